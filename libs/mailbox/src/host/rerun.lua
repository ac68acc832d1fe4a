-- rerun: an entry marked idempotent starts again under a new owner, its output counted from the beginning of the new run.
-- ARGV 3 fence · 4 host · 5 entry
-- Returns {1} · {-1} fenced · {-2} not running · {-3} not marked idempotent
if not owns(ARGV[3], ARGV[4]) then return {-1} end
if redis.call('HGET', state, 'run') ~= ARGV[5] then return {-2} end
local record = record_key(ARGV[5])
if redis.call('HGET', record, 'retry') ~= 'idempotent' then return {-3} end
redis.call('HSET', record, 'fence', ARGV[3], 'stdout', 0, 'stderr', 0, 'started', now_ms())
emit('command.started', ARGV[5], '{"hostId":"' .. ARGV[4] .. '","again":true}')
ring()
return {1}
