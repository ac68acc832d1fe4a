-- put-back: end the first attempt of the running entry, and make the entry the head again, without a start deadline.
-- ARGV 3 fence · 4 host · 5 entry · 6 first attempt, sealed · 7 end of its Result, JSON ·
--      8 other fields of its Result, JSON · 9… last output chunks (see follows)
-- Returns {1} put back (again, when it arrives twice) · {-1} fenced ·
--         {-2} it does not run, was cancelled, has an open stdin, or its generation is ending ·
--         {-5, stdout, stderr} output not at the stored offset
if not owns(ARGV[3], ARGV[4]) then return {-1} end
local id = ARGV[5]
local record = record_key(id)
local cancel, input, first, stdout, stderr, stored_seq = unpack(redis.call('HMGET', record, 'cancel', 'input', 'first', 'stdout', 'stderr', 'seq'))
if first == ARGV[6] then return {1} end
local running, phase = unpack(redis.call('HMGET', state, 'running', 'phase'))
if running ~= id or phase ~= 'open' or cancel or input or first then return {-2} end
local follow, offsets, seq = follows(9, stdout, stderr, stored_seq)
if not follow then return {-5, offsets[1], offsets[2]} end
write_when_full()
emit_output(id, 9)
redis.call('HSET', record, 'state', 'waiting', 'first', ARGV[6], 'firstEnd', ARGV[7], 'firstFields', ARGV[8], 'stdout', offsets[1],
  'stderr', offsets[2], 'seq', seq)
redis.call('HDEL', record, 'cleared', 'deadline', 'asked')
redis.call('LPUSH', queue, id)
count_waiting(tenant_quotas())
redis.call('HDEL', state, 'running', 'held', 'delegated')
redis.call('HSET', state, 'activeAt', string.format('%.0f', now_ms()))
publish_newest()
return {1}
