-- cancel: ask the driver of a batch to end it. A batch that nobody has driven ends at once, also while it is
-- stored, and one that nobody drives for a while.
-- ARGV 1 id · 2 reason · 3 retention ms · 4 ms after the end of the lease in which another driver comes
-- Returns 1 ended · 2 asked · 0 it had ended, or is unknown
local id, phase, started, lease_until = unpack(redis.call('HMGET', state, 'id', 'state', 'startedAt', 'leaseUntil'))
if id ~= ARGV[1] or phase == 'ended' then return 0 end
write_when_full()
redis.call('HSETNX', state, 'cancel', ARGV[2])
if started and now_ms() < tonumber(lease_until or 0) + ARGV[4] then return 2 end
finish(ARGV[3], 'signal')
return 1
