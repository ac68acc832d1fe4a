-- relock: renew the lock of a session job, also after it has expired. Only the session's last owner may do so, under its last fence.
-- KEYS 1 owners · 2 lock of the session job (BullMQ's)
-- ARGV 1 member · 2 fence · 3 host · 4 lock ms
-- Returns 1 this host has the session · 0 another host has it
local lock = redis.call('GET', KEYS[2])
if lock and lock ~= ARGV[3] then return 0 end
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] .. ' ' .. ARGV[3] then return 0 end
redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
return 1
