-- refuse-request: take back a cancellation or a close that no known producer has signed.
-- ARGV 3 fence · 4 host · 5 the running entry to cancel, or '' for the close · 6 the refused signed request, or ''
-- Returns {1} taken back, or there is none · {0} another request has come · {-1} fenced
if not owns(ARGV[3], ARGV[4]) then return {-1} end
write_when_full()
if ARGV[5] ~= '' then
  local record = record_key(ARGV[5])
  if (redis.call('HGET', record, 'cancelSigned') or '') ~= ARGV[6] then return {0} end
  redis.call('HDEL', record, 'cancel', 'cancelSigned')
  return {1}
end
local phase, signed = unpack(redis.call('HMGET', state, 'phase', 'closeSigned'))
if phase ~= 'closing' then return {1} end
if (signed or '') ~= ARGV[6] then return {0} end
redis.call('HSET', state, 'phase', 'open')
redis.call('HDEL', state, 'closeSigned')
-- Callers that wait for the end of the entry or session read the state again.
redis.call('PUBLISH', feed, 'open')
return {1}
