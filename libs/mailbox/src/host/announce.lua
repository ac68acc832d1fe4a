-- announce: the owner says how its shell fares.
-- ARGV 3 fence · 4 host · 5 epoch · 6 status (starting, ready) · 7 event type or '' · 8 event data JSON
--      9 epoch before the first shell of this sandbox
-- Returns {1} · {-1} fenced
if not owns(ARGV[3], ARGV[4]) then return {-1} end
redis.call('HSET', state, 'epoch', ARGV[5], 'status', ARGV[6], 'base', ARGV[9])
if ARGV[7] ~= '' then emit(ARGV[7], '', ARGV[8]) end
ring()
return {1}
