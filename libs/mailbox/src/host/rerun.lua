-- rerun: start an idempotent entry again, once per fence, under a newer owner than the one that started it.
-- Its raw offsets and its seq begin again at 0.
-- ARGV 3 fence · 4 host · 5 entry
-- Returns {1} (again, when it arrives twice) · {-1} fenced · {-2} not running
--         {-3} not idempotent, cancelled, with an open stdin (its read part is deleted), or started under this fence
if not owns(ARGV[3], ARGV[4]) then return {-1} end
if redis.call('HGET', state, 'running') ~= ARGV[5] then return {-2} end
local record = record_key(ARGV[5])
local rerun_fence, started_fence, retry, cancel, input = unpack(redis.call('HMGET', record, 'rerunFence', 'fence', 'retry', 'cancel', 'input'))
if rerun_fence == ARGV[3] then return {1} end
if started_fence == ARGV[3] or retry ~= 'idempotent' or cancel or input then return {-3} end
redis.call('HSET', record, 'fence', ARGV[3], 'host', ARGV[4], 'rerunFence', ARGV[3], 'stdout', 0, 'stderr', 0, 'seq', 0, 'startedAt', now_ms())
-- The shell of the earlier run must not be adopted.
redis.call('HDEL', state, 'shell')
emit('command.started', ARGV[5], '{"hostId":"' .. ARGV[4] .. '","again":true}')
publish_newest()
return {1}
