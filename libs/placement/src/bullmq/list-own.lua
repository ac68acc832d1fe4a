-- list-own: list the active jobs whose lock names a host.
-- KEYS 1 queues
-- ARGV 1 prefix of the queues · 2 host
-- Returns for each job: its queue · its id · its data
local prefix, host = ARGV[1], ARGV[2]
local reply = {}
for _, name in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local keys = prefix .. ':' .. name .. ':'
  for _, job in ipairs(redis.call('LRANGE', keys .. 'active', 0, -1)) do
    if redis.call('GET', keys .. job .. ':lock') == host then
      reply[#reply + 1] = name
      reply[#reply + 1] = job
      reply[#reply + 1] = redis.call('HGET', keys .. job, 'data') or ''
    end
  end
end
return reply
