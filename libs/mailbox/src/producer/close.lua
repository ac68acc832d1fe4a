-- close: end a life. What waits ends as a cancellation; the owner ends the rest, or, with none within reach, this does.
-- ARGV 3 generation · 4 result JSON of an entry that never ran · 5 '1' when the owner is out of reach · 6 result JSON of the running entry then
--      7 retention ms · 8 the most entries that one call cancels · 9 channel prefix of hosts' wake-ups · 10 wake-up
-- Returns {state, host or '', {inbox, entry, event, …}}: state 0 closed before or unknown · 1 closed now · 2 closing, its owner ends it · 3 closing, call again
local known = redis.call('HMGET', state, 'life', 'gen', 'host', 'run')
if not known[1] or known[1] == 'closed' or ARGV[3] ~= known[2] then return {0, '', {}} end
write_when_full()
local ended = {}
redis.call('HSET', state, 'life', 'closing')
if known[4] then redis.call('HSETNX', record_key(known[4]), 'cancel', 'session closed') end
cancel_waiting(tonumber(ARGV[8]), ARGV[4], ARGV[7], ended)
local code, host = 2, known[3] or ''
if redis.call('LLEN', queue) > 0 then
  code = 3
elseif host == '' or ARGV[5] == '1' then
  code, host = 1, ''
  if known[4] then
    ended[#ended + 1] = redis.call('HGET', record_key(known[4]), 'inbox') or ''
    ended[#ended + 1] = known[4]
    ended[#ended + 1] = complete(known[4], 'cancellation', ARGV[6], ARGV[7])
    redis.call('HDEL', state, 'run')
  end
  end_ownership()
  redis.call('HSET', state, 'status', 'queued')
  end_life('{}', ARGV[7])
end
publish_newest()
if code == 2 then redis.call('PUBLISH', ARGV[9] .. host, ARGV[10]) end
return {code, host, ended}
