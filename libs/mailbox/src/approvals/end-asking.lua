-- end-asking: remove askers from their questions. A question ends with its last asker.
-- ARGV 2 'withdrawn': the given askers · 'expired': those whose time is over, oldest first · 3 retention ms ·
--      4… the withdrawn askers; or the most that expire in one call
-- Returns the number of removed askers
local how, at, askers = ARGV[2], now_ms(), {}
if how == 'expired' then
  askers = redis.call('ZRANGEBYSCORE', pending, '-inf', text_of(at), 'LIMIT', 0, ARGV[4])
else
  for i = 4, #ARGV do askers[#askers + 1] = ARGV[i] end
end
for _, asker in ipairs(askers) do
  local id, binding, is_over = leave(asker)
  if id then
    if how == 'expired' then
      redis.call('SET', answered_key(asker), 'expired ' .. binding, 'PX', ARGV[3])
      redis.call('ZADD', decided, text_of(at), 'expire ' .. id .. ' ' .. asker)
    end
    if is_over then redis.call('SET', end_key(id), '{"state":"' .. how .. '"}', 'PX', ARGV[3]) end
    publish(id)
  end
end
return #askers
