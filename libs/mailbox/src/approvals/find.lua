-- find: look for an answer to exactly this question. Changes nothing, but for the time to live of a grant that a session uses.
-- ARGV 2 `<session> <generation> <entry>` · 3 binding · 4 `<session> <generation> <hash of the question>` · 5 retention ms
--      6 '1': read the grants that reach every command of the tenant
-- Returns {ms by the clock of Redis, answers that are not applied yet, grant, sealed or '', how it ended, JSON or '', {id, grant, …}}
local found, ended = false, false
local id, binding = split(redis.call('GET', answered_key(ARGV[2])))
if id and binding == ARGV[3] then
  found = redis.call('GET', grant_key(id))
  ended = redis.call('GET', end_key(id))
end
if not found then
  local of_session = split(redis.call('GET', answered_key(ARGV[4])))
  if of_session then
    found = redis.call('GET', grant_key(of_session))
    if found then
      id = of_session
      redis.call('PEXPIRE', grant_key(id), ARGV[5])
      redis.call('PEXPIRE', answered_key(ARGV[4]), ARGV[5])
    end
  end
end
local tenant_wide = {}
if ARGV[6] == '1' then
  for _, of_prefix in ipairs(redis.call('SMEMBERS', prefixes)) do
    tenant_wide[#tenant_wide + 1] = of_prefix
    tenant_wide[#tenant_wide + 1] = redis.call('GET', grant_key(of_prefix)) or ''
  end
end
return {text_of(now_ms()), redis.call('XLEN', answers), found and id or '', found or '', ended or '', tenant_wide}
