-- close: end a life. What waits ends as a cancellation; the owner ends the rest, or, with none within reach, this does.
-- ARGV 3 generation, or '' for any · 4 result JSON of an entry that never ran · 5 '1' when the owner is out of reach · 6 result JSON of the running entry then · 7 retention ms
-- Returns {state, host or '', {inbox, entry, event, …}}: state 0 closed before or unknown · 1 closed now · 2 closing, its owner ends it
local known = redis.call('HMGET', state, 'life', 'gen', 'host', 'run')
if not known[1] or known[1] == 'closed' then return {0, '', {}} end
if ARGV[3] ~= '' and ARGV[3] ~= known[2] then return {0, '', {}} end
local ended = {}
local function cancel(id, result)
  local inbox = redis.call('HGET', record_key(id), 'inbox') or ''
  local event = complete(id, 'cancellation', result, ARGV[7])
  ended[#ended + 1] = inbox
  ended[#ended + 1] = id
  ended[#ended + 1] = event
end
local id = redis.call('LPOP', queue)
while id do
  cancel(id, ARGV[4])
  id = redis.call('LPOP', queue)
end
if known[3] and ARGV[5] ~= '1' then
  redis.call('HSET', state, 'life', 'closing')
  if known[4] then redis.call('HSETNX', record_key(known[4]), 'cancel', 'session closed') end
  ring()
  return {2, known[3], ended}
end
if known[4] then cancel(known[4], ARGV[6]) end
redis.call('HDEL', state, 'host', 'run')
redis.call('HSET', state, 'life', 'closed', 'status', 'queued')
emit('session.closed', '', '{}')
redis.call('PEXPIRE', state, ARGV[7])
redis.call('PEXPIRE', stream, ARGV[7])
ring()
return {1, '', ended}
