-- append: add output of the running entry to the stream, at the stored raw offset and seq only.
-- ARGV 3 fence · 4 host · 5 entry · 6 '1': also when Redis is full · 7… output chunks (see follows)
-- Returns {1, stdout, stderr} stored · {0, stdout, stderr} not at the stored offset (a call that arrived twice) ·
--         {-1} fenced · {-2} not running
local fence, host, running = unpack(redis.call('HMGET', state, 'fence', 'host', 'running'))
if fence ~= ARGV[3] or host ~= ARGV[4] then return {-1} end
if running ~= ARGV[5] then return {-2} end
local record = record_key(running)
local stdout, stderr, stored_seq = unpack(redis.call('HMGET', record, 'stdout', 'stderr', 'seq'))
local follow, offsets, seq = follows(7, stdout, stderr, stored_seq)
if not follow then return {0, offsets[1], offsets[2]} end
if ARGV[6] == '1' then write_when_full() end
emit_output(running, 7)
redis.call('HSET', record, 'stdout', offsets[1], 'stderr', offsets[2], 'seq', seq)
publish_output()
return {1, offsets[1], offsets[2]}
