-- requeue: move the active jobs whose lock has run out to the front of the waiting jobs of their queue. With a third
-- key, also restores there which queues have waiting jobs, and forgets the queues that have no job.
-- A call that arrives late does nothing: after an outage, hosts renew their locks first.
-- KEYS 1 the guard of the interval · 2 queues · 3 waiting-queues
-- ARGV 1 prefix of the queues · 2 the time of Redis (ms) after which this call does nothing · 3 interval ms
-- Returns the number of moved jobs
local time = redis.call('TIME')
if time[1] * 1000 + math.floor(time[2] / 1000) > tonumber(ARGV[2]) then return 0 end
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], '1', 'PX', ARGV[3])
local moved = 0
local function forget(name)
  redis.call('ZREM', KEYS[2], name)
  redis.call('SREM', KEYS[2] .. ':' .. string.match(name, '@(.+)$'), name)
end
local function move(name, keys)
  local active = redis.call('LRANGE', keys .. 'active', 0, -1)
  for _, job in ipairs(active) do
    if redis.call('EXISTS', keys .. job .. ':lock') == 0 then
      redis.call('LREM', keys .. 'active', 1, job)
      -- A job without data was removed.
      if redis.call('EXISTS', keys .. job) == 1 then
        redis.call('RPUSH', keys .. 'wait', job)
        moved = moved + 1
      end
    end
  end
  if KEYS[3] then
    if redis.call('EXISTS', keys .. 'wait', keys .. 'prioritized') > 0 then
      redis.call('ZADD', KEYS[3], 0, name)
    elseif #active == 0 then
      forget(name)
    end
  end
end
for _, name in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  -- The call fails if the tenant has written other data to its queue, which must not hold up other tenants.
  local is_valid = pcall(move, name, ARGV[1] .. ':' .. name .. ':')
  if not is_valid and KEYS[3] then forget(name) end
end
return moved
