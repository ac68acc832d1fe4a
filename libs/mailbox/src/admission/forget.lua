-- forget: remove a session whose life is over from the index, unless an entry was submitted since the caller read its score.
-- KEYS 1 index · 2 owners
-- ARGV 1 member · 2 its score when the caller read it
-- Returns 1 forgotten · 0 submitted to again, or not there
if redis.call('ZSCORE', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[2], ARGV[1])
return 1
