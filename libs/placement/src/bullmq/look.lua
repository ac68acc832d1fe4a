-- look: choose the jobs that a host may take, in the order in which it takes them. The next slot goes to the tenant
-- that holds the fewest slots for its weight; among equals, to the one that has waited longest, since it was last given
-- a slot or since its next job was added. A tenant's own jobs are taken by the time at which they were added, where a
-- priority of n counts as n minutes later. A job that a host has lost is the tenant's first one.
-- Leaves out the tenants that hold as many slots as their quota, and those that the host passes over.
-- With a sixth key, writes what the tenants hold and wait for there instead, unless that was written within a second.
-- KEYS 1 queues · 2 noted · 3 tenants · 4 waiting-queues · 5 hosts · 6 demand
-- ARGV 1 prefix of the queues · 2 JSON: {served: class → true, weights: tenant → weight, quotas: tenant → most
--      slots, passedOver: tenant → true, from: line → position of the first job that is read, places: how many jobs,
--      shared: whether each line gives an equal part}; with a sixth key only {weights, quotas}
-- Returns the time of Redis in ms · the other classes in which jobs wait, with spaces between them · an equal part for
--      each live host of the jobs that may be taken, rounded up · then for each job of a served class: its queue · its
--      line · its id · its data · how many wait behind it in its line · since when it has been the next one of its
--      tenant (ms), 0 if it is not
local prefix, asked, demand = ARGV[1], cjson.decode(ARGV[2]), KEYS[6]
local DEMAND_MS, DEMAND_AGE_MS = 5000, 900
-- Age of the last heartbeat of a live host. It has the time of the host, so a difference between clocks is allowed for.
local HOST_AGE_MS = 10000
if demand and redis.call('PTTL', demand) > DEMAND_MS - DEMAND_AGE_MS then return {} end
local tenants, waiting, lines, others = {}, {}, 0, {}
take_noted(KEYS[2], KEYS[3], KEYS[1], KEYS[4])
for _, name in ipairs(redis.call('ZRANGE', KEYS[4], 0, -1)) do
  local class, owner = string.match(name, '^sessions%-([^@]+)@(.+)$')
  local found = read_queue(prefix .. ':' .. name .. ':')
  if #found == 0 then
    redis.call('ZREM', KEYS[4], name)
  elseif class and (demand or asked.served[class]) then
    local tenant = tenants[owner]
    if not tenant then
      tenant = {name = owner, held = 0, since = 0, weight = asked.weights[owner] or 1, lines = {}}
      tenants[owner], waiting[#waiting + 1] = tenant, tenant
    end
    for _, line in ipairs(found) do
      line.queue, line.class = name, class
      line.name = line.priority and name .. ' ' .. line.priority or name
      local from = not demand and asked.from[line.name] or 0
      line.at = from < line.count and from or 0
      tenant.lines[#tenant.lines + 1] = line
      lines = lines + 1
    end
  elseif class and not others[class] then
    others[class] = true
    others[#others + 1] = class
  end
end
-- Only tenants that wait cost something, however many others have queues.
for _, tenant in ipairs(waiting) do
  for _, name in ipairs(redis.call('SMEMBERS', KEYS[1] .. ':' .. tenant.name)) do
    local active = redis.pcall('LLEN', prefix .. ':' .. name .. ':' .. 'active')
    tenant.held = tenant.held + (tonumber(active) or 0)
    tenant.since = math.max(tenant.since, tonumber(redis.call('ZSCORE', KEYS[1], name) or 0))
  end
end

-- Reads the next job of a line.
local function read(line)
  local job, added, due, data = job_at(line, line.at)
  line.added, line.due = added, due
  line.job = {line.queue, line.name, job, data, line.count - line.at - 1}
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

local each = asked.shared and math.max(1, math.floor(asked.places / lines)) or asked.places or 1
local turns, takeable = {}, 0
for _, tenant in ipairs(waiting) do
  tenant.room = (asked.quotas[tenant.name] or math.huge) - tenant.held
  if demand or tenant.room > 0 and not asked.passedOver[tenant.name] then
    tenant.left = 0
    local count = 0
    for _, line in ipairs(tenant.lines) do
      line.last = math.min(line.count, line.at + each)
      tenant.left = tenant.left + line.last - line.at
      count = count + line.count
      read(line)
    end
    takeable = takeable + math.min(count, tenant.room)
    tenant.since = math.max(tenant.since, first(tenant).added)
    turns[#turns + 1] = {tenant = tenant, share = demand and 0 or tenant.held / tenant.weight}
  end
end
table.sort(turns, before)

if demand then
  local all = {}
  for n, turn in ipairs(turns) do
    local tenant, counts = turn.tenant, {}
    for _, line in ipairs(tenant.lines) do counts[line.class] = (counts[line.class] or 0) + line.count end
    all[n] = {tenant = redis.sha1hex(tenant.name), held = tenant.held, weight = tenant.weight, waiting = counts}
    if tenant.room < math.huge then all[n].room = math.max(0, tenant.room) end
  end
  redis.call('SET', demand, #all > 0 and cjson.encode(all) or '[]', 'PX', DEMAND_MS)
  return {}
end

-- No tenant behind the first ones can have one of the first places.
local most = asked.shared and math.huge or asked.places
for n = 1, math.min(#turns, most) do
  local tenant = turns[n].tenant
  for more = 1, math.min(tenant.left, most) - 1 do
    turns[#turns + 1] = {tenant = tenant, share = (tenant.held + more) / tenant.weight}
  end
end
table.sort(turns, before)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local hosts = takeable > 0 and redis.call('ZCOUNT', KEYS[5], string.format('%.0f', now - HOST_AGE_MS), '+inf') or 1
local part = math.ceil(takeable / math.max(1, hosts))
local reply = {string.format('%.0f', now), table.concat(others, ' '), part}
for n = 1, math.min(#turns, most) do
  local tenant = turns[n].tenant
  local line = first(tenant)
  for _, value in ipairs(line.job) do reply[#reply + 1] = value end
  reply[#reply + 1] = tenant.listed and '0' or string.format('%.0f', tenant.since)
  tenant.listed = true
  line.at = line.at + 1
  if line.at < line.last then read(line) end
end
return reply
