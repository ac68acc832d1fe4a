-- list-own: list the active jobs whose lock names a host.
-- KEYS 1 queues
-- ARGV 1 prefix of the queues · 2 host
-- Returns for each job: its queue · its id · its data
local prefix, host = ARGV[1], ARGV[2]
local reply = {}
local function list(name)
  local keys = prefix .. ':' .. name .. ':'
  for _, job in ipairs(redis.call('LRANGE', keys .. 'active', 0, -1)) do
    if redis.call('GET', keys .. job .. ':lock') == host then
      local data = redis.call('HGET', keys .. job, 'data') or ''
      reply[#reply + 1] = name
      reply[#reply + 1] = job
      reply[#reply + 1] = data
    end
  end
end
for _, name in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  -- The call fails if the tenant has written other data to its queue, which must not hold up other tenants.
  pcall(list, name)
end
return reply
