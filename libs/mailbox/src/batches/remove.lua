-- remove: remove a batch that has ended, or that was stored in part.
-- ARGV 1 id
-- Returns 1 removed, or unknown · 0 it waits or runs
local id, phase = unpack(redis.call('HMGET', state, 'id', 'state'))
if id ~= ARGV[1] then return 1 end
if phase == 'waiting' or phase == 'running' then return 0 end
redis.call('UNLINK', unpack(KEYS))
return 1
