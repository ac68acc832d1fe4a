-- input: forget what the shell was given of the running entry's open stdin, and hand out what follows.
-- ARGV 3 fence · 4 host · 5 entry · 6 bytes that the shell was given · 7 the offset to read from · 8 the most bytes to read, but for one chunk
-- Returns {1, written, closed (end, broken) or '', ms since the lease of who streams it ran out (0: it holds, or nobody does), {end, chunk, …}}
--         {-1} fenced · {-2} not running, or its stdin is not open
local owner = redis.call('HMGET', state, 'fence', 'host', 'run')
if owner[1] ~= ARGV[3] or owner[2] ~= ARGV[4] then return {-1} end
local record, chunks = record_key(ARGV[5]), input_key(ARGV[5])
local known = redis.call('HMGET', record, 'input', 'written', 'taken', 'closed', 'lease', 'full')
if owner[3] ~= ARGV[5] or not known[1] then return {-2} end
local written = tonumber(known[2] or 0)
local taken = math.min(tonumber(ARGV[6]), written)
if taken > tonumber(known[3] or 0) then
  redis.call('XTRIM', chunks, 'MINID', string.format('%.0f', taken + 1))
  redis.call('HSET', record, 'taken', string.format('%.0f', taken))
  if known[6] then
    redis.call('HDEL', record, 'full')
    redis.call('PUBLISH', feed, 'input')
  end
end
local found, from, left = {}, tonumber(ARGV[7]), tonumber(ARGV[8])
-- Many small ones are several readings, so that nobody else waits for long.
while left > 0 and from < written and #found < 1024 do
  local chunk = redis.call('XRANGE', chunks, string.format('%.0f', from + 1), '+', 'COUNT', 1)[1]
  if not chunk then break end
  found[#found + 1] = string.match(chunk[1], '^%d+')
  found[#found + 1] = chunk[2][2]
  left = left - (found[#found - 1] - from)
  from = tonumber(found[#found - 1])
end
local lapsed = known[5] and not known[4] and math.max(0, now_ms() - known[5]) or 0
return {1, string.format('%.0f', written), known[4] or '', string.format('%.0f', lapsed), found}
