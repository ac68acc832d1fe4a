-- forget: remove an ended session from the index, unless it was submitted to since the caller read its score. A closed
-- session stays listed until its state expires, unless too many are listed.
-- KEYS 1 index · 2 owners · 3 closed
-- ARGV 1 session · 2 its score when the caller read it · 3 ms until its state expires, or '' when it has none ·
--      4 most listed sessions · 5 member
-- Returns 1 forgotten · 0 submitted to again, or not there
if redis.call('ZSCORE', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[2], ARGV[5])
if ARGV[3] == '' then return 1 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)
redis.call('ZADD', KEYS[3], now + ARGV[3], ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[3], 0, -1 - ARGV[4])
redis.call('PEXPIRE', KEYS[3], ARGV[3])
return 1
