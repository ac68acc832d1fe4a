-- lock-job: give a host the first of these jobs that still wait and whose tenants hold fewer slots than their quotas.
-- Writes what BullMQ writes when it hands out the head of a queue, and when the queue's tenant was given a slot.
-- KEYS 1 queues
-- ARGV 1 prefix of the queues · 2 host · 3 the most jobs · then for each job: its queue · its id · its tenant's quota,
--      or '' · lock ms
-- Returns the places of the locked jobs in the arguments, from 1
local prefix, host, most = ARGV[1], ARGV[2], tonumber(ARGV[3])
local time = redis.call('TIME')
local at = time[1] * 1000 + math.floor(time[2] / 1000)
local now = string.format('%.0f', at)
-- Returns the number of slots that a tenant holds.
local function count_held(owner)
  local held = 0
  for _, name in ipairs(redis.call('SMEMBERS', KEYS[1] .. ':' .. owner)) do
    held = held + (tonumber(redis.pcall('LLEN', prefix .. ':' .. name .. ':' .. 'active')) or 0)
  end
  return held
end
-- Locks a job, if it still waits. Returns whether it did. `given` is the number of jobs that this call locked before,
-- as the next slot goes, among equals, to the tenant that was given its last one first.
local function lock(queue, job, lock_ms, given)
  local keys = prefix .. ':' .. queue .. ':'
  if redis.call('LREM', keys .. 'wait', -1, job) + redis.call('ZREM', keys .. 'prioritized', job) == 0 then return false end
  -- A job without data was removed.
  if redis.call('EXISTS', keys .. job) == 0 then return false end
  redis.call('HSET', keys .. job, 'processedOn', now, 'pb', host)
  redis.call('HINCRBY', keys .. job, 'ats', 1)
  redis.call('LPUSH', keys .. 'active', job)
  redis.call('SET', keys .. job .. ':lock', host, 'PX', lock_ms)
  redis.call('ZADD', KEYS[1], string.format('%.3f', at + given / 1000), queue)
  return true
end
-- Slots that tenants with a quota hold, this call's included.
local held, locked = {}, {}
for i = 4, #ARGV, 4 do
  if #locked == most then break end
  local owner, quota = string.match(ARGV[i], '@(.+)$'), tonumber(ARGV[i + 2])
  if quota and not held[owner] then held[owner] = count_held(owner) end
  if not quota or held[owner] < quota then
    -- The call fails if the tenant has written other data to its queue, which must not hold up other tenants.
    local is_valid, is_locked = pcall(lock, ARGV[i], ARGV[i + 1], ARGV[i + 3], #locked)
    if is_valid and is_locked then
      locked[#locked + 1] = i / 4
      if quota then held[owner] = held[owner] + 1 end
    end
  end
end
return locked
