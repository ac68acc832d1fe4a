-- look: choose the jobs that a host may take, in the order in which it takes them. The next slot goes to the tenant
-- that holds the fewest slots for its weight; among equals, to the one that has waited longest, since it was last given
-- a slot or since its next job was added. A tenant's own jobs are taken by the time at which they were added, where a
-- priority of n counts as n minutes later. A job that a host has lost is the tenant's first one.
-- A queue consists of lines, whose jobs are taken as they were added: `wait`, and the jobs of each priority.
-- Leaves out the tenants that hold as many slots as their quota, and those that the host passes over. Forgets the
-- queues that have no job.
-- KEYS 1 queues
-- ARGV 1 prefix of the queues · 2 JSON: {offers: class → true, weights: tenant → weight, quotas: tenant → most
--      slots, passedOver: tenant → true, from: line → position of the first job that is read, places: how many jobs,
--      shared: whether each line gives an equal part}
-- Returns for each job: its queue · its line · its id · its data · how many wait behind it in its line
local prefix, asked = ARGV[1], cjson.decode(ARGV[2])
local tenants, waiting, lines = {}, {}, 0
local MINUTE_MS, SCORES = 60000, 4294967296

-- Adds a line of `count` jobs to a tenant. `start` is the rank of its first job among those with a priority.
local function add(tenant, queue, keys, priority, start, count)
  local name = priority and queue .. ' ' .. priority or queue
  local from = asked.from[name] or 0
  if #tenant.lines == 0 then waiting[#waiting + 1] = tenant end
  tenant.lines[#tenant.lines + 1] = {queue = queue, name = name, keys = keys, start = start, count = count,
    delay = (priority or 0) * MINUTE_MS, at = from < count and from or 0}
  lines = lines + 1
end
local names = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
for n = 1, #names, 2 do
  local name, granted = names[n], tonumber(names[n + 1])
  local class, owner = string.match(name, '^sessions%-([^@]+)@(.+)$')
  local keys = prefix .. ':' .. name .. ':'
  local wait, active = redis.call('LLEN', keys .. 'wait'), redis.call('LLEN', keys .. 'active')
  local prioritized = redis.call('ZCARD', keys .. 'prioritized')
  if wait + prioritized + active == 0 then
    redis.call('ZREM', KEYS[1], name)
  elseif class then
    local tenant = tenants[owner]
    if not tenant then
      tenant = {name = owner, held = 0, since = 0, weight = asked.weights[owner] or 1, lines = {}}
      tenants[owner] = tenant
    end
    tenant.held, tenant.since = tenant.held + active, math.max(tenant.since, granted)
    if asked.offers[class] then
      if wait > 0 then add(tenant, name, keys, nil, nil, wait) end
      local rank = 0
      while rank < prioritized do
        local score = redis.call('ZRANGE', keys .. 'prioritized', rank, rank, 'WITHSCORES')[2]
        local priority = math.floor(score / SCORES)
        local above = string.format('(%.0f', (priority + 1) * SCORES)
        local past = redis.call('ZCOUNT', keys .. 'prioritized', '-inf', above)
        add(tenant, name, keys, priority, rank, past - rank)
        rank = past
      end
    end
  end
end
local each = asked.shared and math.max(1, math.floor(asked.places / lines)) or asked.places

-- Reads the next job of a line.
local function read(line)
  local rank = line.start and line.start + line.at
  local job = rank and redis.call('ZRANGE', line.keys .. 'prioritized', rank, rank)[1]
    or redis.call('LINDEX', line.keys .. 'wait', -1 - line.at)
  local fields = redis.call('HMGET', line.keys .. job, 'data', 'timestamp', 'processedOn')
  line.job = {line.queue, line.name, job, fields[1] or '', line.count - line.at - 1}
  line.added = tonumber(fields[2] or '') or 0
  line.due = not rank and fields[3] and 0 or line.added + line.delay
end
-- Returns the line whose next job is the tenant's next one.
local function first(tenant)
  local best
  for _, line in ipairs(tenant.lines) do
    if line.at < line.last and (not best or line.due < best.due) then best = line end
  end
  return best
end
local function before(a, b)
  if a.share ~= b.share then return a.share < b.share end
  if a.tenant.since ~= b.tenant.since then return a.tenant.since < b.tenant.since end
  if a.tenant ~= b.tenant then return a.tenant.name < b.tenant.name end
  return false
end

local turns = {}
for _, tenant in ipairs(waiting) do
  if tenant.held < (asked.quotas[tenant.name] or math.huge) and not asked.passedOver[tenant.name] then
    tenant.left = 0
    for _, line in ipairs(tenant.lines) do
      line.last = math.min(line.count, line.at + each)
      tenant.left = tenant.left + line.last - line.at
      read(line)
    end
    tenant.since = math.max(tenant.since, first(tenant).added)
    turns[#turns + 1] = {tenant = tenant, share = tenant.held / tenant.weight}
  end
end
table.sort(turns, before)
-- No tenant behind the first ones can have one of the first places.
local most = asked.shared and math.huge or asked.places
for n = 1, math.min(#turns, most) do
  local tenant = turns[n].tenant
  for more = 1, math.min(tenant.left, most) - 1 do
    turns[#turns + 1] = {tenant = tenant, share = (tenant.held + more) / tenant.weight}
  end
end
table.sort(turns, before)
local reply = {}
for n = 1, math.min(#turns, most) do
  local line = first(turns[n].tenant)
  for _, value in ipairs(line.job) do reply[#reply + 1] = value end
  line.at = line.at + 1
  if line.at < line.last then read(line) end
end
return reply
