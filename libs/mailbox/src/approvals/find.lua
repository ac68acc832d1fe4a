-- find: look for an answer to a question. Changes only the time to live of a grant that a session uses.
-- ARGV 2 asker · 3 binding · 4 `<session> <generation> <hash of the question>` · 5 retention ms ·
--      6 '1': read the grants for every command of the tenant · 7 '1': read those of the session for directories
-- Returns {ms by the clock of Redis, unapplied answers, grant id, grant, sealed or '', 1 the grant is the session's ·
--         0 the asker's, end of the asker's question, JSON or '', {id, grant, …}, {id, grant of a directory, …}}
local at, retention = now_ms(), ARGV[5]
local found, ended, of_session = false, false, 0
local id, binding = split(redis.call('GET', answered_key(ARGV[2])))
if id and binding == ARGV[3] then
  if id == 'expired' then
    ended = '{"state":"expired"}'
  else
    found = redis.call('GET', grant_key(id))
    ended = redis.call('GET', end_key(id))
  end
end
if not found then
  local shared = split(redis.call('GET', answered_key(ARGV[4])))
  found = shared and redis.call('GET', grant_key(shared))
  if found then
    id, of_session = shared, 1
    redis.call('PEXPIRE', grant_key(id), retention)
    redis.call('PEXPIRE', answered_key(ARGV[4]), retention)
    redis.call('ZADD', grants, 'XX', text_of(at + retention), id)
    keep_grants(retention)
  end
end
local tenant_wide = {}
if ARGV[6] == '1' then
  for _, of_prefix in ipairs(endless_grants()) do
    tenant_wide[#tenant_wide + 1] = of_prefix
    tenant_wide[#tenant_wide + 1] = redis.call('GET', grant_key(of_prefix)) or ''
  end
end
local of_directories = {}
if ARGV[7] == '1' then
  local covering = covering_key(string.match(ARGV[2], '^%S+ %S+'))
  for _, of_directory in ipairs(redis.call('SMEMBERS', covering)) do
    local grant = redis.call('GET', grant_key(of_directory))
    if grant then
      of_directories[#of_directories + 1] = of_directory
      of_directories[#of_directories + 1] = grant
      redis.call('PEXPIRE', grant_key(of_directory), retention)
      redis.call('ZADD', grants, 'XX', text_of(at + retention), of_directory)
    else
      redis.call('SREM', covering, of_directory)
    end
  end
  if #of_directories > 0 then
    redis.call('PEXPIRE', covering, retention)
    keep_grants(retention)
  end
end
return {text_of(at), redis.call('XLEN', answers), found and id or '', found or '', of_session, ended or '', tenant_wide, of_directories}
