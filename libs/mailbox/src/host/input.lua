-- input: delete the part of the running entry's open stdin that the shell has received, and read the next part.
-- ARGV 3 fence · 4 host · 5 entry · 6 bytes that the shell has received · 7 offset to read from ·
--      8 most bytes to read (at least one chunk is read)
-- Returns {1, written, closed (end, broken) or '', ms since the lease of its streaming writer expired or 0, {end,
--         chunk, …}, signed close of a producer or ''} · {-1} fenced · {-2} not running, or its stdin is not open
local id = ARGV[5]
local fence, host, running = unpack(redis.call('HMGET', state, 'fence', 'host', 'running'))
if fence ~= ARGV[3] or host ~= ARGV[4] then return {-1} end
local record, chunks = record_key(id), input_key(id)
local input, stored_written, stored_taken, closed, lease, full, signed =
  unpack(redis.call('HMGET', record, 'input', 'written', 'taken', 'closed', 'lease', 'full', 'closeSigned'))
if running ~= id or not input then return {-2} end
local written = tonumber(stored_written or 0)
local taken = math.min(tonumber(ARGV[6]), written)
if taken > tonumber(stored_taken or 0) then
  redis.call('XTRIM', chunks, 'MINID', string.format('%.0f', taken + 1))
  redis.call('HSET', record, 'taken', string.format('%.0f', taken))
  if full then
    redis.call('HDEL', record, 'full')
    redis.call('PUBLISH', feed, 'input')
  end
end
local found, from, left = {}, tonumber(ARGV[7]), tonumber(ARGV[8])
-- The number of chunks is limited, because a script blocks every other client. Many small chunks take several calls.
while left > 0 and from < written and #found < 1024 do
  local chunk = redis.call('XRANGE', chunks, string.format('%.0f', from + 1), '+', 'COUNT', 1)[1]
  if not chunk then break end
  local chunk_end = string.match(chunk[1], '^%d+')
  found[#found + 1] = chunk_end
  found[#found + 1] = chunk[2][2]
  left = left - (chunk_end - from)
  from = tonumber(chunk_end)
end
local lapsed = lease and not closed and math.max(0, now_ms() - lease) or 0
return {1, string.format('%.0f', written), closed or '', string.format('%.0f', lapsed), found, signed or ''}
