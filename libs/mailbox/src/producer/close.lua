-- close: end a generation and its waiting entries. The owner ends the running entry and the generation; without an
-- owner, this script does.
-- ARGV 3 generation · 4 result JSON of an entry that never ran · 5 '1' when the owner is out of reach ·
--      6 result JSON of the running entry in this case · 7 retention ms · 8 most entries that one call cancels ·
--      9 channel prefix of hosts' wake-ups · 10 wake-up · 11 signed request of a producer, or ''
-- Returns {state, host or '', {inbox, entry, event, …}}: state 0 closed before or unknown · 1 closed now ·
--         2 closing by its owner · 3 closing, call again
local phase, generation, host, running = unpack(redis.call('HMGET', state, 'phase', 'generation', 'host', 'running'))
if not phase or phase == 'closed' or ARGV[3] ~= generation then return {0, '', {}} end
write_when_full()
local ended = {}
redis.call('HSET', state, 'phase', 'closing')
if ARGV[11] ~= '' then redis.call('HSET', state, 'closeSigned', ARGV[11]) end
if running then redis.call('HSETNX', record_key(running), 'cancel', 'session closed') end
cancel_waiting(tonumber(ARGV[8]), ARGV[4], ARGV[7], ended)
local code = 2
if redis.call('LLEN', queue) > 0 then
  code = 3
elseif not host or ARGV[5] == '1' then
  code, host = 1, false
  if running then
    complete_into(running, 'cancellation', ARGV[6], ARGV[7], ended)
    redis.call('HDEL', state, 'running')
  end
  end_ownership()
  redis.call('HSET', state, 'status', 'queued')
  end_generation('{}', ARGV[7])
end
publish_newest()
if code == 2 then redis.call('PUBLISH', ARGV[9] .. host, ARGV[10]) end
return {code, host or '', ended}
