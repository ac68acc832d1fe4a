-- release: give up the ownership, unless an entry runs or can be started or checked. Ends the generation of a closing
-- session.
-- ARGV 3 fence · 4 host · 5 status afterwards (queued, lost) · 6 event type or '' · 7 event data JSON ·
--      8 retention ms · 9 result JSON of an entry that never ran · 10 most entries that one call cancels ·
--      11 '1': leave waiting entries to the next owner · 12 why the shell was ended, or ''
-- Returns {1, phase} (again, when it arrives twice) · {0} it has work · {-1} fenced
local fence, host, phase, running, released, held = unpack(redis.call('HMGET', state, 'fence', 'host', 'phase', 'running', 'released', 'held'))
if not host and released == ARGV[3] then return {1, phase} end
if fence ~= ARGV[3] or host ~= ARGV[4] then return {-1} end
if running then return {0} end
write_when_full()
local busy
if phase == 'closing' then
  -- A close that was interrupted leaves waiting entries behind.
  cancel_waiting(tonumber(ARGV[10]), ARGV[9], ARGV[8], {})
  busy = redis.call('LLEN', queue) > 0
else
  busy = ARGV[11] ~= '1' and runnable(held)
end
if not busy then
  end_ownership()
  redis.call('HSET', state, 'status', ARGV[5])
  if ARGV[12] ~= '' then redis.call('HSET', state, 'loss', ARGV[12]) end
  if phase == 'closing' then
    phase = 'closed'
    end_generation(ARGV[7], ARGV[8])
  elseif ARGV[6] ~= '' then
    emit(ARGV[6], '', ARGV[7])
  end
end
publish_newest()
if busy then return {0} end
return {1, phase}
