-- write: add a chunk to the open stdin of a command that waits or runs, close it, or keep up the lease of who streams it.
-- ARGV 3 entry · 4 writer · 5 number of the call, which rises over all calls of the writer · 6 bytes of the chunk in clear · 7 the chunk, sealed, or ''
--      8 how this closes it (end, broken), or '' · 9 the offset at which the chunk must begin, or '' · 10 lease ms from now, or ''
--      11 the most bytes, and 12 the most chunks, that may be unread · 13 bell prefix · 14 member
-- Returns {1, written} stored (again, when it arrives twice) · {0, written} no room: the feed says when there is · {-1} unknown · {-2} it has ended
--         {-3} its stdin is not open to this call · {-4} it was closed before · {-5, written} what is written does not end at that offset
local record = record_key(ARGV[3])
local wrote = 'wrote:' .. ARGV[4]
local known = redis.call('HMGET', record, 'state', 'input', 'written', 'taken', 'closed', wrote)
if not known[1] then return {-1} end
if known[1] == 'ended' then return {-2} end
-- What one process streams no other writes into.
if not known[2] or (known[2] == 'streamed') ~= (ARGV[9] ~= '') then return {-3} end
local written = tonumber(known[3] or 0)
if tonumber(known[6] or 0) >= tonumber(ARGV[5]) then return {1, written} end
if known[5] then return {-4} end
if ARGV[9] ~= '' and tonumber(ARGV[9]) ~= written then return {-5, written} end
local chunks = input_key(ARGV[3])
local size = tonumber(ARGV[6])
-- A lease, or the end, is no more for a full Redis to hold.
if size == 0 then write_when_full() end
if ARGV[10] ~= '' then redis.call('HSET', record, 'lease', string.format('%.0f', now_ms() + ARGV[10])) end
if size > 0 then
  if written + size - tonumber(known[4] or 0) > tonumber(ARGV[11]) or redis.call('XLEN', chunks) >= tonumber(ARGV[12]) then
    redis.call('HSET', record, 'full', '1')
    return {0, written}
  end
  written = written + size
  -- A chunk's id is where it ends, so that both ends of the stream are found by an offset.
  redis.call('XADD', chunks, string.format('%.0f-0', written), 'd', ARGV[7])
end
redis.call('HSET', record, 'written', string.format('%.0f', written), wrote, ARGV[5])
if ARGV[8] ~= '' then redis.call('HSET', record, 'closed', ARGV[8]) end
if known[1] == 'running' and (size > 0 or ARGV[8] ~= '') then
  redis.call('PUBLISH', ARGV[13] .. (redis.call('HGET', state, 'host') or ''), ARGV[14] .. ' input')
end
return {1, written}
