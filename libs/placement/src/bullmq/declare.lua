-- declare: restore jobs, locks and owners of the sessions that a host serves, after Redis came back with other data.
-- The highest fence wins, and every later fence is above all declared fences. A full Redis accepts this script: the
-- first write needs no memory.
-- KEYS 1 owners · 2 fence counter · 3 tenants · 4 queues
-- ARGV 1 prefix of the queues · 2 host
--      then for each session: queue · job · member · fence · lock ms · data of the job, as JSON · its priority ·
--      index of its tenant · tenant · session
-- Returns the jobs of the sessions that another host has
local prefix, host = ARGV[1], ARGV[2]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local lost = {}
redis.call('DEL', prefix .. ':nothing')
for i = 3, #ARGV, 10 do
  local keys, job, member, fence = prefix .. ':' .. ARGV[i] .. ':', ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local priority = ARGV[i + 6]
  local stored, owner = string.match(redis.call('HGET', KEYS[1], member) or '0 ', '^(%d+) (.*)$')
  local lock = redis.call('GET', keys .. job .. ':lock')
  local newer = tonumber(stored) > tonumber(fence)
  local other = stored == fence and (owner ~= host or lock and lock ~= host)
  if newer or other then
    lost[#lost + 1] = job
  else
    redis.call('HSET', KEYS[1], member, fence .. ' ' .. host)
    if tonumber(redis.call('GET', KEYS[2]) or 0) < tonumber(fence) then redis.call('SET', KEYS[2], fence) end
    redis.call('ZADD', ARGV[i + 7], 'NX', -now, ARGV[i + 9])
    redis.call('SADD', KEYS[3], ARGV[i + 8])
    redis.call('ZADD', KEYS[4], 'NX', 0, ARGV[i])
    redis.call('SADD', KEYS[4] .. ':' .. ARGV[i + 8], ARGV[i])
    if redis.call('EXISTS', keys .. job) == 0 then
      local opts = '{"jobId":"' .. job .. '","removeOnComplete":true,"removeOnFail":true,"attempts":0,"priority":' .. priority .. '}'
      redis.call('HSET', keys .. job, 'name', 'session', 'data', ARGV[i + 5], 'opts', opts, 'priority', priority, 'delay', 0,
        'timestamp', string.format('%.0f', now))
    end
    redis.call('LREM', keys .. 'wait', 1, job)
    redis.call('ZREM', keys .. 'prioritized', job)
    redis.call('LREM', keys .. 'active', 1, job)
    redis.call('LPUSH', keys .. 'active', job)
    redis.call('SET', keys .. job .. ':lock', host, 'PX', ARGV[i + 4])
  end
end
return lost
