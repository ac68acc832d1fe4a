-- open: record a session, or attach to the one that lives.
-- What nobody submits to goes after the retention, counted from the last call.
-- ARGV 3 sealed spec · 4 digest of the spec, or '' when it has none · 5 '1' to attach to whatever lives · 6 retention ms
--      7 placement class · 8 placement JSON: both in clear, for routing
-- Returns {1, generation} created · {2, generation} attached · {-1, sealed spec, generation} another spec · {0} closing: try again
local known = redis.call('HMGET', state, 'life', 'gen', 'digest', 'spec', 'unused')
if known[1] == 'closing' then return {0} end
if known[1] == 'open' then
  if ARGV[5] ~= '1' and ARGV[4] ~= known[3] then return {-1, known[4], known[2]} end
  if known[5] then redis.call('PEXPIRE', state, ARGV[6]) end
  return {2, known[2]}
end
local at = now_ms()
local generation = string.format('%.0f', math.max(at, tonumber(known[2] or 0) + 1))
redis.call('HDEL', state, 'epoch', 'said', 'base', 'announced')
redis.call('HSET', state, 'life', 'open', 'gen', generation, 'spec', ARGV[3], 'digest', ARGV[4], 'created', at, 'active', at, 'status', 'queued', 'unused', 1,
  'class', ARGV[7], 'placement', ARGV[8])
redis.call('PEXPIRE', state, ARGV[6])
return {1, generation}
