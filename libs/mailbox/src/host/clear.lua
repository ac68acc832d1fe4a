-- clear: record that the host's admission rules admit the head, and start it, in one step.
-- ARGV 3 fence · 4 host · 5 entry · 6 digest of the admission rules ·
--      7 ms by the clock of Redis after which it must not start, or ''
-- Returns {0, phase} the generation is ending · {1, entry…} started · {2, entry…} running (a call that arrived twice) ·
--         {3, entry…} overdue, not started · {-1} fenced · {-2} it is not the head, or held ·
--         {-3} too late: decide again
local fence, host, id, admission = ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local owner_fence, owner_host, running, phase, held, counted =
  unpack(redis.call('HMGET', state, 'fence', 'host', 'running', 'phase', 'held', 'counted'))
if owner_fence ~= fence or owner_host ~= host then return {-1} end
if running then return running == id and running_entry(running) or {-2} end
if phase ~= 'open' then return {0, phase or ''} end
if runnable(held) ~= id then return {-2} end
if ARGV[7] ~= '' and now_ms() > tonumber(ARGV[7]) then return {-3} end
redis.call('HSET', record_key(id), 'cleared', admission)
local reply, started, at = start_next(fence, host, phase, held, admission, counted)
if started then redis.call('HSET', state, 'running', started, 'activeAt', at) end
publish_newest()
return reply
