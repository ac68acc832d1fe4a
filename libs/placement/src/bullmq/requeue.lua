-- requeue: hand out the active jobs of a queue again whose lock has run out, before all that wait.
-- A call that arrives late does nothing: after an outage, hosts renew their locks first.
-- KEYS 1 active · 2 wait · 3 marker (BullMQ's) · 4 the guard of the interval
-- ARGV 1 prefix of the jobs · 2 the time of Redis (ms) after which this call does nothing · 3 interval ms
-- Returns the number of jobs
local time = redis.call('TIME')
if time[1] * 1000 + math.floor(time[2] / 1000) > tonumber(ARGV[2]) then return 0 end
if redis.call('EXISTS', KEYS[4]) == 1 then return 0 end
redis.call('DEL', KEYS[4])
redis.call('SET', KEYS[4], '1', 'PX', ARGV[3])
local moved = 0
for _, job in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
  if redis.call('EXISTS', ARGV[1] .. job .. ':lock') == 0 then
    redis.call('LREM', KEYS[1], 1, job)
    -- A job without data was removed.
    if redis.call('EXISTS', ARGV[1] .. job) == 1 then
      redis.call('RPUSH', KEYS[2], job)
      moved = moved + 1
    end
  end
end
if moved > 0 then redis.call('ZADD', KEYS[3], 0, '0') end
return moved
