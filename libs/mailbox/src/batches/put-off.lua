-- put-off: look at a batch later, or forget it, unless it was noted or put off in between.
-- KEYS 1 batches
-- ARGV 1 `<tenant> <name>` · 2 its score as the caller knows it · 3 ms until the next look, or '' to forget it
-- Returns 1 put off or forgotten · 0 its score has changed
if redis.call('ZSCORE', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
if ARGV[3] == '' then
  redis.call('ZREM', KEYS[1], ARGV[1])
else
  local time = redis.call('TIME')
  redis.call('ZADD', KEYS[1], string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[3]), ARGV[1])
end
return 1
