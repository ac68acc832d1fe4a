-- remove: remove a batch.
-- ARGV 1 id · 2 the state in which it may be removed
-- Returns 1 removed · 0 it has another state · -1 it is unknown
local id, phase = unpack(redis.call('HMGET', state, 'id', 'state'))
if id ~= ARGV[1] then return -1 end
if phase ~= ARGV[2] then return 0 end
redis.call('UNLINK', unpack(KEYS))
return 1
