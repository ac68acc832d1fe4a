-- release: the owner gives the session up; refused while the mailbox holds anything. The release of a closing session ends its life.
-- ARGV 3 fence · 4 host · 5 status it leaves (queued, lost) · 6 event type or '' · 7 event data JSON · 8 retention ms
-- Returns {1, life} · {0} something runs or waits · {-1} fenced
if not owns(ARGV[3], ARGV[4]) then return {-1} end
if redis.call('HGET', state, 'run') or redis.call('LLEN', queue) > 0 then return {0} end
redis.call('HDEL', state, 'host')
redis.call('HSET', state, 'status', ARGV[5])
local life = redis.call('HGET', state, 'life')
if life == 'closing' then
  life = 'closed'
  redis.call('HSET', state, 'life', life)
  emit('session.closed', '', ARGV[7])
  redis.call('PEXPIRE', state, ARGV[8])
  redis.call('PEXPIRE', stream, ARGV[8])
elseif ARGV[6] ~= '' then
  emit(ARGV[6], '', ARGV[7])
end
ring()
return {1, life}
