-- expire: end the questions whose time is over, oldest first. Their sessions are told next. A question that others ask goes on for them.
-- ARGV 2 the most entries of one call · 3 how a question ends, JSON · 4 retention ms
-- Returns the number of entries whose question has expired
local at = now_ms()
local askers = redis.call('ZRANGEBYSCORE', pending, '-inf', text_of(at), 'LIMIT', 0, ARGV[2])
for _, asker in ipairs(askers) do
  local id, binding, is_over = leave(asker)
  if id then
    redis.call('SET', answered_key(asker), 'expired ' .. binding, 'PX', ARGV[4])
    redis.call('ZADD', decided, text_of(at), 'expire ' .. id .. ' ' .. asker)
    if is_over then redis.call('SET', end_key(id), ARGV[3], 'PX', ARGV[4]) end
    publish(id)
  else
    redis.call('ZREM', pending, asker)
  end
end
return #askers
