-- forget: take a session whose life is over out of the index, unless it was submitted to again since it was looked at.
-- KEYS 1 index · 2 owners
-- ARGV 1 member · 2 its score when it was looked at
-- Returns 1 forgotten · 0 submitted to again, or not there
if redis.call('ZSCORE', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[2], ARGV[1])
return 1
