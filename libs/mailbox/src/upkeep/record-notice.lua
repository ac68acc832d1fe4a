-- record-notice: add an event about the owner to the stream, once per type and fence. Any process may call it.
-- ARGV 3 fence that the event is about · 4 event type · 5 event data JSON
-- Returns 1 added · 0 added before, or the owner has changed
local fence, host, added_under = unpack(redis.call('HMGET', state, 'fence', 'host', 'notice:' .. ARGV[4]))
if fence ~= ARGV[3] or not host or added_under == ARGV[3] then return 0 end
write_when_full()
redis.call('HSET', state, 'notice:' .. ARGV[4], ARGV[3])
emit(ARGV[4], '', ARGV[5])
publish_newest()
return 1
