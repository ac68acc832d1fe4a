-- apply: apply an answer, and remove it from the stream (APPROVALS-3). Its askers move to `decided`.
-- ARGV 2 id of the answer · 3 id of the question · 4 'approve', 'deny' or 'revoke' · 5 scope or '' ·
--      6 grant, sealed, or '' · 7 end of the question, JSON · 8 retention ms · 9 most askers in one call ·
--      10 denials in a row without a pause · 11 first pause, ms · 12 longest pause, ms ·
--      13 '1': with the scope 'session' the grant covers a directory
-- Returns {1, askers} applied · {2, askers} call again · {0} applied before ·
--         {-1} the question or the grant has ended; the answer is removed
local answer, id, type, scope, retention = ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[8]
if #redis.call('XRANGE', answers, answer, answer) == 0 then return {0} end
if type == 'revoke' then
  redis.call('XDEL', answers, answer)
  local existed = redis.call('DEL', grant_key(id))
  redis.call('ZREM', grants, id)
  keep_grants(retention)
  if existed == 0 then return {-1} end
  redis.call('SET', end_key(id), ARGV[7], 'PX', retention)
  publish(id)
  return {1, 0}
end
if redis.call('EXISTS', askers_key(id)) == 0 then
  redis.call('XDEL', answers, answer)
  return {-1}
end

local at = now_ms()
if type == 'approve' then
  if scope == 'prefix' then
    redis.call('SET', grant_key(id), ARGV[6])
  else
    redis.call('SET', grant_key(id), ARGV[6], 'PX', retention)
  end
  redis.call('ZREMRANGEBYSCORE', grants, '-inf', text_of(at))
  redis.call('ZADD', grants, scope == 'prefix' and '+inf' or text_of(at + retention), id)
  keep_grants(retention)
end
redis.call('SET', end_key(id), ARGV[7], 'PX', retention)

-- After several denials in a row, a session may not ask during a pause. Each further denial doubles the pause.
local function count_denial(session)
  local key = denials_key(session)
  local count = tonumber(string.match(redis.call('GET', key) or '', '^%d+') or 0) + 1
  local over = count - tonumber(ARGV[10])
  local pause = over > 0 and math.min(ARGV[11] * 2 ^ (over - 1), tonumber(ARGV[12])) or 0
  redis.call('SET', key, count .. ' ' .. text_of(at + pause), 'PX', 3600000)
end

local most = tonumber(ARGV[9])
local askers = redis.call('ZRANGE', askers_key(id), 0, most - 1)
for _, asker in ipairs(askers) do
  local _, binding = leave(asker)
  local session, generation = string.match(asker, '^(%S+) (%S+)')
  redis.call('SET', answered_key(asker), id .. ' ' .. (binding or ''), 'PX', retention)
  redis.call('ZADD', decided, text_of(at), type .. ' ' .. id .. ' ' .. asker)
  if type == 'deny' then
    count_denial(session)
  else
    redis.call('DEL', denials_key(session))
    if scope == 'session' then
      redis.call('SET', answered_key(session .. ' ' .. generation .. ' ' .. hash_of(id)), id .. ' session', 'PX', retention)
      if ARGV[13] == '1' then
        local covering = covering_key(session .. ' ' .. generation)
        redis.call('SADD', covering, id)
        redis.call('PEXPIRE', covering, retention)
      end
    end
  end
end
if redis.call('EXISTS', askers_key(id)) == 1 then return {2, #askers} end
redis.call('XDEL', answers, answer)
publish(id)
return {1, #askers}
