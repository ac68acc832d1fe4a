-- store-output: keep an output, in place of an earlier one of the same run and path.
-- ARGV 1 fence · 2 host · 3 digest of run and path · 4 the output, sealed · 5 most bytes of outputs and result lines
-- Returns 1 stored · 0 another one drives the batch · -1 no room
if not is_driver() then return 0 end
local bytes, lines = unpack(redis.call('HMGET', state, 'outputBytes', 'resultBytes'))
local more = #ARGV[4] - redis.call('HSTRLEN', outputs, ARGV[3])
if (bytes or 0) + (lines or 0) + more > tonumber(ARGV[5]) then return -1 end
redis.call('HSET', outputs, ARGV[3], ARGV[4])
redis.call('HINCRBY', state, 'outputBytes', more)
return 1
