-- take: hand out the head of the mailbox to its owner.
-- ARGV 3 fence · 4 host
-- Returns {0, life} nothing to start · {1|2|3, entry…} started now, running already (a call that arrived twice), overdue · {-1} fenced
local known = redis.call('HMGET', state, 'fence', 'host', 'run', 'life')
if known[1] ~= ARGV[3] or known[2] ~= ARGV[4] then return {-1} end
if known[3] then return to_reply(2, known[3], read_entry(known[3])) end
local changes = {}
local reply = start_next(ARGV[3], ARGV[4], known[4], changes)
if #changes > 0 then redis.call('HSET', state, unpack(changes)) end
publish_newest()
return reply
