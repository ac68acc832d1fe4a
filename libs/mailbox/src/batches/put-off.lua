-- put-off: give a member of a sorted set a later time, or remove it. Redis does this also when it is full.
-- KEYS 1 the set: batches, or the batches of a tenant
-- ARGV 1 member · 2 its score as the caller knows it, or '' for any · 3 ms until its time, or '' to remove it
-- Returns 1 done · 0 its score has changed
if ARGV[2] ~= '' and redis.call('ZSCORE', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('ZREM', KEYS[1], ARGV[1])
if ARGV[3] ~= '' then
  local time = redis.call('TIME')
  redis.call('ZADD', KEYS[1], string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[3]), ARGV[1])
end
return 1
