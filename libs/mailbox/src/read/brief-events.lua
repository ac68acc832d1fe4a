-- brief-events: read the events of a session after an id, without output and without Results.
-- KEYS 1 stream
-- ARGV 1 key prefix of the session · 2 the id · 3 the most entries of the stream to read, output included
-- Returns {id of the last entry that was read or '', how many were read, {id, type, entry, data, …}}.
-- The data of a `command.completed` is its outcome.
local entries = redis.call('XRANGE', KEYS[1], '(' .. ARGV[2], '+', 'COUNT', ARGV[3])
local last, found = '', {}
for _, entry in ipairs(entries) do
  last = entry[1]
  local type, id, data = entry[2][2], entry[2][4], entry[2][6]
  if type == 'command.completed' then data = redis.call('HGET', ARGV[1] .. 'record:' .. id, 'outcome') or '' end
  if type ~= 'command.output' then
    found[#found + 1] = last
    found[#found + 1] = type
    found[#found + 1] = id
    found[#found + 1] = data
  end
end
return {last, #entries, found}
