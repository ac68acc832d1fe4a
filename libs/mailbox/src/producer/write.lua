-- write: add to the open stdin of a waiting or running command, close it, or renew the lease of its streaming writer.
-- ARGV 3 entry · 4 writer · 5 number of the call, which rises over all calls of the writer ·
--      6 how this call closes it (end, broken), or '' · 7 offset at which it must begin, or '' ·
--      8 lease ms from now, or '' · 9 most unread bytes · 10 most unread chunks ·
--      11 channel prefix of hosts' wake-ups · 12 wake-up · 13 signed close of a producer, or '' ·
--      14… chunks, in groups of two: size before sealing, sealed chunk; all are stored, or none
-- Returns {1, written} stored (again, when it arrives twice) ·
--         {0, written} no room: the feed carries 'input' once there is · {-1} unknown · {-2} it has ended ·
--         {-3} its stdin is not open to this call · {-4} it was closed before ·
--         {-5, written} the stdin does not end at that offset
local record = record_key(ARGV[3])
local last_call_field = 'wrote:' .. ARGV[4]
local entry_state, input, stored_written, taken, closed, last_call =
  unpack(redis.call('HMGET', record, 'state', 'input', 'written', 'taken', 'closed', last_call_field))
if not entry_state then return {-1} end
if entry_state == 'ended' then return {-2} end
-- A streamed stdin has one writer, which gives offsets. Other writers may give an offset only when they close the
-- stdin.
if not input or (input == 'streamed') ~= (ARGV[7] ~= '') and (input == 'streamed' or ARGV[6] == '') then return {-3} end
local written = tonumber(stored_written or 0)
local chunks = input_key(ARGV[3])
local count, size = (#ARGV - 13) / 2, 0
for i = 14, #ARGV, 2 do size = size + tonumber(ARGV[i]) end
-- A call without a chunk or an end cannot store anything twice, so its number is not checked.
local is_renewal = size == 0 and ARGV[6] == ''
if not is_renewal and tonumber(last_call or 0) >= tonumber(ARGV[5]) then return {1, written} end
if closed then return {-4} end
if ARGV[7] ~= '' and not is_renewal and tonumber(ARGV[7]) ~= written then return {-5, written} end
-- A full Redis must not refuse a lease or an end, which need no more memory.
if size == 0 then write_when_full() end
if ARGV[8] ~= '' then redis.call('HSET', record, 'lease', string.format('%.0f', now_ms() + ARGV[8])) end
if is_renewal then return {1, written} end
if size > 0 and (written + size - tonumber(taken or 0) > tonumber(ARGV[9]) or redis.call('XLEN', chunks) + count > tonumber(ARGV[10])) then
  redis.call('HSET', record, 'full', '1')
  return {0, written}
end
for i = 14, #ARGV, 2 do
  written = written + tonumber(ARGV[i])
  -- The id of a chunk is its end offset, so an offset is enough to trim the stream and to continue reading.
  redis.call('XADD', chunks, string.format('%.0f-0', written), 'd', ARGV[i + 1])
end
redis.call('HSET', record, 'written', string.format('%.0f', written), last_call_field, ARGV[5])
if ARGV[6] ~= '' then redis.call('HSET', record, 'closed', ARGV[6], 'closeSigned', ARGV[13]) end
if entry_state == 'running' then
  redis.call('PUBLISH', ARGV[11] .. (redis.call('HGET', state, 'host') or ''), ARGV[12])
end
return {1, written}
