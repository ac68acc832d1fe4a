-- note: anybody may say what is known of the owner, once per type and fence.
-- ARGV 3 fence that the note is about · 4 event type · 5 event data JSON
-- Returns 1 said · 0 said before, or the owner has changed
local known = redis.call('HMGET', state, 'fence', 'host', 'note:' .. ARGV[4])
if known[1] ~= ARGV[3] or not known[2] or known[3] == ARGV[3] then return 0 end
redis.call('HSET', state, 'note:' .. ARGV[4], ARGV[3])
emit(ARGV[4], '', ARGV[5])
ring()
return 1
