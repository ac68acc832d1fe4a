-- rank: find the places of waiting jobs among all jobs of their tenant that wait in some of its queues.
-- KEYS the `wait` lists of these queues
-- ARGV for each job: number of its queue in KEYS · its id
-- Returns the number of jobs that wait in the queues, then for each job how many of them are taken before it, or -1 if
-- it does not wait
local lines, total = {}, 0
for n, wait in ipairs(KEYS) do
  for _, line in ipairs(lines_of(string.sub(wait, 1, -5))) do
    line.queue = n
    lines[#lines + 1] = line
    total = total + line.count
  end
end
-- Returns the number of a job's line, and how many jobs of the line are before it.
local function find(queue, job)
  local keys = string.sub(KEYS[queue], 1, -5)
  local index = redis.call('LPOS', keys .. 'wait', job, 'RANK', -1)
  local rank = not index and redis.call('ZRANK', keys .. 'prioritized', job)
  for n, line in ipairs(lines) do
    if line.queue == queue then
      if index and not line.start then return n, line.count - 1 - index end
      if rank and line.start and rank < line.start + line.count then return n, rank - line.start end
    end
  end
end
-- Returns how many jobs of a line are due before a time, or also at that time.
local function count_due(line, due, inclusive)
  local low, high = 0, line.count
  while low < high do
    local middle = math.floor((low + high) / 2)
    local _, _, other = job_at(line, middle)
    if other < due or inclusive and other == due then low = middle + 1 else high = middle end
  end
  return low
end
local reply = {total}
for i = 1, #ARGV, 2 do
  local own, ahead = find(tonumber(ARGV[i]), ARGV[i + 1])
  if own then
    local _, _, due = job_at(lines[own], ahead)
    for n, line in ipairs(lines) do
      if n ~= own then ahead = ahead + count_due(line, due, n < own) end
    end
  end
  reply[#reply + 1] = own and ahead or -1
end
return reply
