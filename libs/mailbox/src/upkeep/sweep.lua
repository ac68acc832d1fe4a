-- sweep: end waiting entries whose start deadline has passed, and trim the stream by age and by bytes, oldest finished first.
-- ARGV 3 retention ms · 4 most bytes of the stream · 5 result JSON of an entry that was never started in time
-- Returns {trimmed entries, waiting, host or '', {inbox, entry, event, …}}
local at = now_ms()
local ended = {}
for _, id in ipairs(redis.call('LRANGE', queue, 0, 999)) do
  local known = redis.call('HMGET', record_key(id), 'deadline', 'inbox')
  if known[1] and tonumber(known[1]) < at then
    redis.call('LREM', queue, 1, id)
    local event = complete(id, 'timeout', ARGV[5], ARGV[3])
    ended[#ended + 1] = known[2] or ''
    ended[#ended + 1] = id
    ended[#ended + 1] = event
  end
end
-- Nothing of an entry that has not ended is trimmed by age.
local oldest = at
local run = redis.call('HGET', state, 'run')
local first = run or redis.call('LINDEX', queue, 0)
if first then oldest = tonumber(redis.call('HGET', record_key(first), 'at') or at) end
local trimmed = redis.call('XTRIM', stream, 'MINID', string.format('%.0f', math.min(at - tonumber(ARGV[3]), oldest)))
local size = redis.call('MEMORY', 'USAGE', stream, 'SAMPLES', 0)
local limit = tonumber(ARGV[4])
local length = redis.call('XLEN', stream)
if size and size > limit and length > 0 then
  -- The share of entries that is over the limit goes, but what the running command has said stays.
  local excess = math.ceil(length * (size - limit) / size)
  local cut = redis.call('XRANGE', stream, '-', '+', 'COUNT', math.min(excess, 1000))
  local last = cut[#cut][1]
  local last_ms = tonumber(string.match(last, '^(%d+)-'))
  if last_ms >= oldest then last = string.format('%.0f', oldest) end
  trimmed = trimmed + redis.call('XTRIM', stream, 'MINID', last)
end
ring()
return {trimmed, redis.call('LLEN', queue), redis.call('HGET', state, 'host') or '', ended}
