-- renew: extend the locks of a host's session jobs. A lock that has run out is set again for the session's last owner
-- under its last fence. If `requeue` has moved its job to the waiting jobs, the job becomes active again.
-- A full Redis accepts this script: the first write needs no memory.
-- KEYS 1 owners
-- ARGV 1 prefix of the queues · 2 host
--      then for each job: queue · job · member · fence, or '' before it is acquired · lock ms
-- Returns {time of Redis in ms, job that this host has lost…}
local prefix, host = ARGV[1], ARGV[2]
local time = redis.call('TIME')
local reply = {string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))}
redis.call('DEL', prefix .. ':nothing')
for i = 3, #ARGV, 5 do
  local keys, job, member = prefix .. ':' .. ARGV[i] .. ':', ARGV[i + 1], ARGV[i + 2]
  local fence, lock_ms = ARGV[i + 3], ARGV[i + 4]
  local lock = redis.call('GET', keys .. job .. ':lock')
  if lock == host then
    redis.call('PEXPIRE', keys .. job .. ':lock', lock_ms)
  elseif not lock and fence ~= '' and redis.call('HGET', KEYS[1], member) == fence .. ' ' .. host then
    if redis.call('LREM', keys .. 'wait', 1, job) + redis.call('ZREM', keys .. 'prioritized', job) > 0 then
      redis.call('LPUSH', keys .. 'active', job)
    end
    redis.call('SET', keys .. job .. ':lock', host, 'PX', lock_ms)
  else
    reply[#reply + 1] = job
  end
end
return reply
