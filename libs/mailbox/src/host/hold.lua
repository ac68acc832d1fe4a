-- hold: keep the head from starting until an answer releases or ends it. Entries behind it wait.
-- ARGV 3 fence · 4 host · 5 entry · 6 digest of the admission rules that hold it ·
--      7 data of the event approval.requested, JSON · 8 this call's own id
-- Returns 1 held (again, when it arrives twice) · -1 fenced ·
--         -2 something runs, the generation is ending, or it is not the head
local id, admission = ARGV[5], ARGV[6]
local fence, host, running, phase, held = unpack(redis.call('HMGET', state, 'fence', 'host', 'running', 'phase', 'held'))
if fence ~= ARGV[3] or host ~= ARGV[4] then return -1 end
if running or phase ~= 'open' or redis.call('LINDEX', queue, 0) ~= id then return -2 end
local record = record_key(id)
-- This call may have arrived before, and an answer may have come since. Then the entry is not held again.
if held == id or redis.call('HGET', record, 'holder') == ARGV[8] then return 1 end
local at = time_of(emit('approval.requested', id, ARGV[7]))
redis.call('HSET', record, 'held', admission, 'holder', ARGV[8], 'asked', at)
redis.call('HSET', state, 'held', id)
publish_newest()
return 1
