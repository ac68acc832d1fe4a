-- cancel: end a waiting entry at once; mark a running entry, which its host then stops.
-- ARGV 3 entry · 4 reason · 5 result JSON of an entry that never ran · 6 retention ms · 7 this call's own id ·
--      8 channel prefix of hosts' wake-ups · 9 wake-up · 10 signed request of a producer, or ''
-- Returns {1, event, inbox, 1 the session needs a job · 0} ended while it waited (again, when it arrives twice) ·
--         {2, host, generation} marked · {0} it had ended before · {-1} unknown
local id = ARGV[3]
local record = record_key(id)
local entry_state, inbox, event, canceller = unpack(redis.call('HMGET', record, 'state', 'inbox', 'event', 'canceller'))
if not entry_state then return {-1} end
local repeated = canceller == ARGV[7]
if entry_state == 'ended' and not repeated then return {0} end
if entry_state == 'running' then
  write_when_full()
  redis.call('HSETNX', record, 'cancel', ARGV[4])
  if ARGV[10] ~= '' then redis.call('HSET', record, 'cancelSigned', ARGV[10]) end
  local host, generation = unpack(redis.call('HMGET', state, 'host', 'generation'))
  return {2, host or '', generation or ''}
end
local host, held, running = unpack(redis.call('HMGET', state, 'host', 'held', 'running'))
if not repeated then
  write_when_full()
  redis.call('LREM', queue, 1, id)
  count_waiting(tenant_quotas())
  event = complete(id, 'cancellation', ARGV[5], ARGV[6])
  redis.call('HSET', record, 'canceller', ARGV[7])
  publish_newest()
end
-- Only the end of a held entry makes the entries behind it runnable.
local has_work = held == id and not running and runnable(false)
if has_work and host then redis.call('PUBLISH', ARGV[8] .. host, ARGV[9]) end
return {1, event, inbox, has_work and not host and 1 or 0}
