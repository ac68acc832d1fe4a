-- append: add output of the running entry to the stream, at the stored raw offset and seq only.
-- ARGV 3 fence · 4 host · 5 entry · 6… output entries (see store)
-- Returns {1, stdout, stderr} stored · {0, stdout, stderr} not at the stored offset (a call that arrived twice) · {-1} fenced · {-2} not running
if not owns(ARGV[3], ARGV[4]) then return {-1} end
if redis.call('HGET', state, 'run') ~= ARGV[5] then return {-2} end
local stored, offsets = store(ARGV[5], 6)
ring()
return {stored and 1 or 0, offsets[1], offsets[2]}
