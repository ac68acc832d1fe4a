-- store-output: keep an output in place of an earlier one of the same run and path, or keep none.
-- ARGV 1 fence · 2 host · 3 digest of run and path · 4 the output, sealed, or '' for none · 5 most bytes of outputs and
--      result lines
-- Returns 1 done · 0 another one drives the batch · -1 no room, so nothing is kept of the run and path
if not is_driver() then return 0 end
local before = redis.call('HSTRLEN', outputs, ARGV[3])
if before > 0 then
  redis.call('HDEL', outputs, ARGV[3])
  redis.call('HINCRBY', state, 'outputBytes', -before)
end
if ARGV[4] == '' then return 1 end
local bytes, lines = unpack(redis.call('HMGET', state, 'outputBytes', 'resultBytes'))
if (bytes or 0) + (lines or 0) + #ARGV[4] > tonumber(ARGV[5]) then return -1 end
redis.call('HSET', outputs, ARGV[3], ARGV[4])
redis.call('HINCRBY', state, 'outputBytes', #ARGV[4])
return 1
