-- rerun: start an idempotent entry again, whose shell was lost. Its raw offsets and its seq begin again at 0.
-- ARGV 3 fence · 4 host · 5 entry · 6 number of starts that the caller has read · 7 most starts
-- Returns {1, ms of this start, ms of the first start} (again, when it arrives twice) · {-1} fenced ·
--         {-2} not running · {-3} not idempotent, cancelled, with an open stdin (its read part is deleted), in its
--         second attempt, started since, or too often
if not owns(ARGV[3], ARGV[4]) then return {-1} end
if redis.call('HGET', state, 'running') ~= ARGV[5] then return {-2} end
local record = record_key(ARGV[5])
local rerun_fence, stored_starts, retry, cancel, input, first, started_at, first_at =
  unpack(redis.call('HMGET', record, 'rerunFence', 'starts', 'retry', 'cancel', 'input', 'first', 'startedAt', 'firstAt'))
local starts, known = tonumber(stored_starts or 1), tonumber(ARGV[6])
if rerun_fence == ARGV[3] and starts == known + 1 then return {1, started_at, first_at} end
if starts ~= known or starts >= tonumber(ARGV[7]) or retry ~= 'idempotent' or cancel or input or first then return {-3} end
starts = starts + 1
first_at = first_at or started_at
local at = string.format('%.0f', now_ms())
redis.call('HSET', record, 'fence', ARGV[3], 'host', ARGV[4], 'rerunFence', ARGV[3], 'starts', starts, 'stdout', 0, 'stderr', 0, 'seq', 0,
  'startedAt', at, 'firstAt', first_at)
-- The shell of the earlier run must not be adopted.
redis.call('HDEL', state, 'shell')
emit('command.started', ARGV[5], '{"hostId":"' .. ARGV[4] .. '","again":true,"attempt":' .. starts .. '}')
publish_newest()
return {1, at, first_at}
