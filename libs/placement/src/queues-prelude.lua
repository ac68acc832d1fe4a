-- Code that the scripts of placement share. Each script begins with the parts that it uses (compose-script.ts).
-- A queue consists of lines, whose jobs are taken as they were added: `wait`, and the jobs of each priority.
local MINUTE_MS, SCORES = 60000, 4294967296

-- Returns the lines of a queue that have jobs. `start` is the rank of a line's first job among those with a priority.
local function lines_of(keys)
  local lines, wait = {}, redis.call('LLEN', keys .. 'wait')
  if wait > 0 then lines[1] = {keys = keys, count = wait, delay = 0} end
  local rank, prioritized = 0, redis.call('ZCARD', keys .. 'prioritized')
  while rank < prioritized do
    local score = redis.call('ZRANGE', keys .. 'prioritized', rank, rank, 'WITHSCORES')[2]
    local priority = math.floor(score / SCORES)
    local above = string.format('(%.0f', (priority + 1) * SCORES)
    local past = math.max(rank + 1, redis.call('ZCOUNT', keys .. 'prioritized', '-inf', above))
    lines[#lines + 1] = {keys = keys, start = rank, count = past - rank, priority = priority, delay = priority * MINUTE_MS}
    rank = past
  end
  return lines
end

-- Returns the lines of a queue and the number of its active jobs. Any client of its tenant may write other data there,
-- which must not hold up the queues of others: such a queue has no jobs.
local function read_queue(keys)
  local is_valid, lines, active = pcall(function() return lines_of(keys), redis.call('LLEN', keys .. 'active') end)
  if is_valid then return lines, active end
  return {}, 0
end

-- Returns the job at a place of a line, from 0, with when it was added, when it is due, and its data. A job that a host
-- has lost is due at once: it had a slot, and is at the front of `wait`.
local function job_at(line, at)
  local job = line.start and redis.call('ZRANGE', line.keys .. 'prioritized', line.start + at, line.start + at)[1]
    or redis.call('LINDEX', line.keys .. 'wait', -1 - at)
  local fields = redis.pcall('HMGET', line.keys .. job, 'timestamp', 'processedOn', 'data')
  local added = tonumber(fields[1] or '') or 0
  -- Only `nan` differs from itself.
  if added ~= added then added = 0 end
  return job, added, not line.start and fields[2] and 0 or added + line.delay, fields[3] or ''
end

-- Moves what producers noted to `tenants`, `queues`, `queues:<tenant>` and `waiting-queues`, at most 5,000 items. Any
-- client may note any text, so only names of tenants and queues are kept. A full Redis accepts this, since the first
-- write needs no memory.
local function take_noted(noted, tenants, queues, waiting)
  for _, item in ipairs(redis.call('RPOP', noted, 5000) or {}) do
    local owner = string.match(item, '^sessions%-[^@:%s%c]+@([%w._-]+)$')
    if owner then
      redis.call('ZADD', queues, 'NX', 0, item)
      redis.call('SADD', queues .. ':' .. owner, item)
      redis.call('ZADD', waiting, 0, item)
    else
      owner = string.match(item, '^[%w._-]+$')
    end
    if owner then redis.call('SADD', tenants, owner) end
  end
end
