-- lock-job: give a host the first of these jobs that still waits and whose tenant holds fewer slots than its quota.
-- Writes what BullMQ writes when it hands out the head of a queue, and when the queue's tenant was given a slot.
-- KEYS 1 queues
-- ARGV 1 prefix of the queues · 2 host · 3 lock ms · then for each job: its queue · its id · its tenant's quota, or ''
-- Returns the place of the job in the arguments, from 1 · 0 none may be taken any more
local prefix, host, lock_ms = ARGV[1], ARGV[2], ARGV[3]
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
-- Returns whether the tenant of a queue holds as many slots as its quota.
local function at_quota(queue, quota)
  if quota == nil then return false end
  local owner, held = string.match(queue, '@(.+)$'), 0
  for _, name in ipairs(redis.call('SMEMBERS', KEYS[1] .. ':' .. owner)) do
    held = held + (tonumber(redis.pcall('LLEN', prefix .. ':' .. name .. ':' .. 'active')) or 0)
  end
  return held >= quota
end
-- Locks a job, if it still waits. Returns whether it did.
local function lock(queue, job)
  local keys = prefix .. ':' .. queue .. ':'
  if redis.call('LREM', keys .. 'wait', -1, job) + redis.call('ZREM', keys .. 'prioritized', job) == 0 then return false end
  -- A job without data was removed.
  if redis.call('EXISTS', keys .. job) == 0 then return false end
  redis.call('HSET', keys .. job, 'processedOn', now, 'pb', host)
  redis.call('HINCRBY', keys .. job, 'ats', 1)
  redis.call('LPUSH', keys .. 'active', job)
  redis.call('SET', keys .. job .. ':lock', host, 'PX', lock_ms)
  redis.call('ZADD', KEYS[1], now, queue)
  return true
end
for i = 4, #ARGV, 3 do
  if not at_quota(ARGV[i], tonumber(ARGV[i + 2])) then
    -- The call fails if the tenant has written other data to its queue, which must not hold up other tenants.
    local is_valid, is_locked = pcall(lock, ARGV[i], ARGV[i + 1])
    if is_valid and is_locked then return (i - 1) / 3 end
  end
end
return 0
