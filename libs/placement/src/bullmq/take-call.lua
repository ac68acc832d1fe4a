-- take-call: give a host the next waiting call of a tool, as BullMQ hands out the head of a queue. The tenants that
-- have waiting calls take turns. Forgets the queues that have no job.
-- KEYS 1 queues of tools · 2 noted
-- ARGV 1 prefix of the queues · 2 tool · 3 host · 4 lock ms
-- Returns {queue, id, data} · {} no call of the tool waits
local prefix, tool, host = ARGV[1], ARGV[2], ARGV[3]
for _, item in ipairs(redis.call('RPOP', KEYS[2], 5000) or {}) do
  if string.match(item, '^tool%-[%w_-]+@[%w._-]+$') then redis.call('ZADD', KEYS[1], 'NX', 0, item) end
end
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
-- Returns the length of a list. Any client of the tenant may write other data there.
local function length(key)
  local count = redis.pcall('LLEN', key)
  return tonumber(count) or 0
end
-- Takes the next waiting call from a queue. Returns nothing if none waits there.
local function take(name, keys)
  local waiting = length(keys .. 'wait')
  if waiting + length(keys .. 'active') == 0 then redis.call('ZREM', KEYS[1], name) end
  for _ = 1, waiting do
    local job = redis.call('RPOP', keys .. 'wait')
    local data = redis.pcall('HGET', keys .. job, 'data')
    -- A job without data was removed.
    if type(data) == 'string' then
      redis.call('HSET', keys .. job, 'processedOn', now, 'pb', host)
      redis.call('HINCRBY', keys .. job, 'ats', 1)
      redis.call('LPUSH', keys .. 'active', job)
      redis.call('SET', keys .. job .. ':lock', host, 'PX', ARGV[4])
      redis.call('ZADD', KEYS[1], now, name)
      return {name, job, data}
    end
  end
end
for _, name in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  if string.match(name, '^tool%-([^@]+)@') == tool then
    -- The call fails if the tenant has written other data to its queue, which must not hold up other tenants.
    local is_valid, taken = pcall(take, name, prefix .. ':' .. name .. ':')
    if is_valid and taken then return taken end
  end
end
return {}
