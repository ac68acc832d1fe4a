-- take: start the head of the mailbox.
-- ARGV 3 fence · 4 host · 5 digest of the host's admission rules, or '' when it admits everything
-- Returns {0, phase} nothing can be started · {1, entry…} started · {2, entry…} running (a call that arrived twice) ·
--         {3, entry…} overdue, not started · {4, entry…} needs admission, not started · {-1} fenced
local fence, host, admission = ARGV[3], ARGV[4], ARGV[5]
local owner_fence, owner_host, running, phase, held, counted =
  unpack(redis.call('HMGET', state, 'fence', 'host', 'running', 'phase', 'held', 'counted'))
if owner_fence ~= fence or owner_host ~= host then return {-1} end
if running then return running_entry(running) end
local reply, id, at = start_next(fence, host, phase, held, admission, counted)
if id then redis.call('HSET', state, 'running', id, 'activeAt', at) end
publish_newest()
return reply
