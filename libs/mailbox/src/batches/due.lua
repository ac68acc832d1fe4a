-- due: list detached batches at which a host should look now. Another host looks at them later.
-- KEYS 1 batches-noted · 2 batches
-- ARGV 1 the most to list · 2 ms until another host looks at them · 3, 4 most characters of a tenant and of a name ·
--      then the tenant of each batch that this host drives
-- Returns names with their new scores, alternately
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- Any client may note any text, so only names of batches are kept. What has waited longer is listed before them.
for _, item in ipairs(redis.call('RPOP', KEYS[1], 1000) or {}) do
  local tenant, name = string.match(item, '^([%w._-]+) ([%w._-]+)$')
  if tenant and #tenant <= tonumber(ARGV[3]) and #name <= tonumber(ARGV[4]) then
    redis.call('ZADD', KEYS[2], 'LT', string.format('%.0f', now), item)
  end
end
-- The tenants take turns, from what this host drives on, so that one with many batches does not hold up the others.
local turns, order = {}, {}
for at = 5, #ARGV do turns[ARGV[at]] = (turns[ARGV[at]] or 0) + 1 end
local due = redis.call('ZRANGE', KEYS[2], '-inf', string.format('%.0f', now), 'BYSCORE', 'LIMIT', 0, 1000)
for place, item in ipairs(due) do
  local tenant = string.match(item, '^%S+')
  local turn = turns[tenant] or 0
  turns[tenant] = turn + 1
  order[place] = {item = item, rank = turn * 1000 + place}
end
table.sort(order, function(a, b) return a.rank < b.rank end)
local found, later = {}, string.format('%.0f', now + ARGV[2])
for at = 1, math.min(#order, ARGV[1]) do
  redis.call('ZADD', KEYS[2], later, order[at].item)
  found[#found + 1] = order[at].item
  found[#found + 1] = later
end
return found
