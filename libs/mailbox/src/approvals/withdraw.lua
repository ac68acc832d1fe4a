-- withdraw: remove entries that ask and are not held any more: they were cancelled, or their session was closed.
-- ARGV 2 how a question ends that nobody asks any more, JSON · 3 retention ms · 4… `<session> <generation> <entry>`
-- Returns the number of entries that asked
local count = 0
for i = 4, #ARGV do
  local id, _, is_over = leave(ARGV[i])
  if id then
    count = count + 1
    if is_over then redis.call('SET', end_key(id), ARGV[2], 'PX', ARGV[3]) end
    publish(id)
  end
end
return count
