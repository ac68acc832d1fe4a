-- release: the owner gives the session up; refused while the mailbox holds anything. The release of a closing session ends its life.
-- ARGV 3 fence · 4 host · 5 status it leaves (queued, lost) · 6 event type or '' · 7 event data JSON · 8 retention ms
--      9 result JSON of an entry that never ran · 10 the most entries that one call cancels · 11 '1' to leave what waits to the next owner
-- Returns {1, life} (again, when it arrives twice) · {0} something runs or waits · {-1} fenced
local known = redis.call('HMGET', state, 'fence', 'host', 'life', 'run', 'released')
if not known[2] and known[5] == ARGV[3] then return {1, known[3]} end
if known[1] ~= ARGV[3] or known[2] ~= ARGV[4] then return {-1} end
if known[4] then return {0} end
write_when_full()
-- A close that did not come to its end leaves waiting entries behind.
if known[3] == 'closing' then cancel_waiting(tonumber(ARGV[10]), ARGV[9], ARGV[8], {}) end
local life = known[3]
local busy = redis.call('LLEN', queue) > 0 and ARGV[11] ~= '1'
if not busy then
  end_ownership()
  redis.call('HSET', state, 'status', ARGV[5])
  if life == 'closing' then
    life = 'closed'
    end_life(ARGV[7], ARGV[8])
  elseif ARGV[6] ~= '' then
    emit(ARGV[6], '', ARGV[7])
  end
end
publish_newest()
if busy then return {0} end
return {1, life}
