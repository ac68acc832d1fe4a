-- look: choose the jobs that a host may take, in the order in which it takes them. The next slot goes to the tenant
-- that holds the fewest slots for its weight; among equals, to the one that has waited longest, since it was last given
-- a slot or since its next job was added. A tenant's own jobs are taken by priority, then by age.
-- Leaves out the tenants that hold as many slots as their quota, and those that the host passes over. Forgets the
-- queues that have no job.
-- KEYS 1 queues
-- ARGV 1 prefix of the queues · 2 JSON: {offers: class → true, weights: tenant → weight, quotas: tenant → most
--      slots, passedOver: tenant → true, from: queue → position of the first job that is read, places: how many jobs,
--      shared: whether each queue that has jobs gives an equal part}
-- Returns for each job: its queue · its id · its data · how many wait behind it in its queue
local prefix, asked = ARGV[1], cjson.decode(ARGV[2])
local tenants, waiting, lines = {}, {}, 0
local names = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
for n = 1, #names, 2 do
  local name, granted = names[n], tonumber(names[n + 1])
  local class, owner = string.match(name, '^sessions%-([^@]+)@(.+)$')
  local keys = prefix .. ':' .. name .. ':'
  local wait, active = redis.call('LLEN', keys .. 'wait'), redis.call('LLEN', keys .. 'active')
  local count = wait + redis.call('ZCARD', keys .. 'prioritized')
  if count + active == 0 then
    redis.call('ZREM', KEYS[1], name)
  elseif class then
    local tenant = tenants[owner]
    if not tenant then
      tenant = {name = owner, held = 0, since = 0, weight = asked.weights[owner] or 1, lines = {}}
      tenants[owner] = tenant
    end
    tenant.held, tenant.since = tenant.held + active, math.max(tenant.since, granted)
    if count > 0 and asked.offers[class] then
      local from = asked.from[name] or 0
      if #tenant.lines == 0 then waiting[#waiting + 1] = tenant end
      tenant.lines[#tenant.lines + 1] = {name = name, keys = keys, wait = wait, count = count, at = from < count and from or 0}
      lines = lines + 1
    end
  end
end
local each = asked.shared and math.max(1, math.floor(asked.places / lines)) or asked.places

-- Reads the next job of a line.
local function read(line)
  local at, from = line.at, line.at - line.wait
  local job = from < 0 and redis.call('LINDEX', line.keys .. 'wait', -1 - at)
    or redis.call('ZRANGE', line.keys .. 'prioritized', from, from)[1]
  local fields = redis.call('HMGET', line.keys .. job, 'data', 'priority', 'timestamp')
  line.job = {line.name, job, fields[1] or '', line.count - at - 1}
  line.priority, line.added = tonumber(fields[2] or '') or 0, tonumber(fields[3] or '') or 0
end
-- Returns the line whose next job is the tenant's next one.
local function first(tenant)
  local best
  for _, line in ipairs(tenant.lines) do
    if line.at < line.last and (not best or line.priority < best.priority
      or line.priority == best.priority and line.added < best.added) then best = line end
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
