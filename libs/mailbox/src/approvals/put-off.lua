-- put-off: have a question announced after a while, if it waits still.
-- ARGV 2 id of the question · 3 ms
-- Returns 0
return redis.call('ZADD', unannounced, 'XX', text_of(now_ms() + ARGV[3]), ARGV[2])
