-- withdraw: remove entries that ask and are not held any more: they were cancelled, or their session was closed.
-- ARGV 2 how a question ends that nobody asks any more, JSON · 3 retention ms · 4 those stay that asked less than this many ms ago: a host is
--      about to hold them · 5… `<session> <generation> <entry>`
-- Returns the number of entries that asked
local count = 0
local until_ms = now_ms() - tonumber(ARGV[4])
for i = 5, #ARGV do
  local of = split(redis.call('HGET', asked, ARGV[i]))
  local asked_at = of and redis.call('ZSCORE', askers_key(of), ARGV[i])
  if of and tonumber(asked_at or 0) <= until_ms then
    local id, _, is_over = leave(ARGV[i])
    count = count + 1
    if is_over then redis.call('SET', end_key(id), ARGV[2], 'PX', ARGV[3]) end
    publish(id)
  end
end
return count
