-- cancel: end a waiting entry here and now; mark a running one, which its host then stops.
-- ARGV 3 entry · 4 reason · 5 result JSON of an entry that never ran · 6 retention ms · 7 this call's own id
-- Returns {1, event, inbox} ended while it waited (again, when it arrives twice) · {2, host} marked · {0} it had ended before · {-1} unknown
local record = record_key(ARGV[3])
local known = redis.call('HMGET', record, 'state', 'inbox', 'event', 'canceller')
if not known[1] then return {-1} end
if known[1] == 'ended' then
  if known[4] == ARGV[7] then return {1, known[3], known[2]} end
  return {0}
end
write_when_full()
if known[1] == 'waiting' then
  redis.call('LREM', queue, 1, ARGV[3])
  local event = complete(ARGV[3], 'cancellation', ARGV[5], ARGV[6])
  redis.call('HSET', record, 'canceller', ARGV[7])
  publish_newest()
  return {1, event, known[2]}
end
redis.call('HSETNX', record, 'cancel', ARGV[4])
return {2, redis.call('HGET', state, 'host') or ''}
