-- rerun: an entry marked idempotent starts again, once per fence, under a newer owner than the one that started it.
-- Its raw offsets and its seq begin again at 0.
-- ARGV 3 fence · 4 host · 5 entry
-- Returns {1} (again, when it arrives twice) · {-1} fenced · {-2} not running · {-3} not marked idempotent, cancelled, with an open stdin (what was read of it is gone), or started under this fence
if not owns(ARGV[3], ARGV[4]) then return {-1} end
if redis.call('HGET', state, 'run') ~= ARGV[5] then return {-2} end
local record = record_key(ARGV[5])
local known = redis.call('HMGET', record, 'again', 'fence', 'retry', 'cancel', 'input')
if known[1] == ARGV[3] then return {1} end
if known[2] == ARGV[3] or known[3] ~= 'idempotent' or known[4] or known[5] then return {-3} end
redis.call('HSET', record, 'fence', ARGV[3], 'host', ARGV[4], 'again', ARGV[3], 'stdout', 0, 'stderr', 0, 'seq', 0, 'started', now_ms())
-- Whatever shell is left of the run before, no adopter may follow that one.
redis.call('HDEL', state, 'shell')
emit('command.started', ARGV[5], '{"hostId":"' .. ARGV[4] .. '","again":true}')
publish_newest()
return {1}
