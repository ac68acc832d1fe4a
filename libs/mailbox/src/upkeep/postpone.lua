-- postpone: set the time of upkeep's next look at a session, unless it was noted in the index since the caller read its
-- score.
-- KEYS 1 index
-- ARGV 1 session · 2 its score when the caller read it · 3 ms from now
-- Returns 1 postponed · 0 noted again, or not there
if redis.call('ZSCORE', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
local time = redis.call('TIME')
redis.call('ZADD', KEYS[1], time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[3], ARGV[1])
return 1
