-- append: add output of the running entry to the stream, at the stored raw offset and seq only.
-- ARGV 3 fence · 4 host · 5 entry · 6… output entries (see read_output)
-- Returns {1, stdout, stderr} stored · {0, stdout, stderr} not at the stored offset (a call that arrived twice) · {-1} fenced · {-2} not running
local owner = read_as_owner(ARGV[3], ARGV[4])
if not owner then return {-1} end
if owner.run ~= ARGV[5] then return {-2} end
local record, fields = record_key(ARGV[5]), {}
local output, offsets = read_output(redis.call('HMGET', record, 'stdout', 'stderr', 'seq'), 6)
if not output then return {0, offsets[1], offsets[2]} end
emit_output(ARGV[5], output)
add_output_fields(fields, output)
if #fields > 0 then redis.call('HSET', record, unpack(fields)) end
ring()
return {1, output[1], output[2]}
