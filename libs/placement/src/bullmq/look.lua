-- look: list jobs that wait in queues, each queue from a position on, in the order in which hosts take them:
-- BullMQ's `wait` from its end, then `prioritized`.
-- KEYS 1 owners, which selects the node of a Cluster
-- ARGV 1 prefix of the queues · then for each queue: its name · position of the first · how many
-- Returns for each queue: {how many wait, job, its data, its priority, when it was added, job…}
local lines = {}
for i = 2, #ARGV, 3 do
  local keys, from, count = ARGV[1] .. ':' .. ARGV[i] .. ':', tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local waiting, prioritized = redis.call('LLEN', keys .. 'wait'), redis.call('ZCARD', keys .. 'prioritized')
  local line = {waiting + prioritized}
  local function add(job)
    local fields = redis.call('HMGET', keys .. job, 'data', 'priority', 'timestamp')
    line[#line + 1] = job
    for n = 1, 3 do line[#line + 1] = fields[n] or '' end
  end
  if from < waiting then
    local jobs = redis.call('LRANGE', keys .. 'wait', math.max(0, waiting - from - count), waiting - from - 1)
    for n = #jobs, 1, -1 do add(jobs[n]) end
  end
  local first, last = math.max(0, from - waiting), from + count - waiting - 1
  if last >= first then
    for _, job in ipairs(redis.call('ZRANGE', keys .. 'prioritized', first, last)) do add(job) end
  end
  lines[#lines + 1] = line
end
return lines
