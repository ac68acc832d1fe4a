-- fail-waiting: end waiting entries of a session without owner, unstarted, with an error.
-- ARGV 3 generation · 4 result JSON · 5 retention ms · 6 most entries that one call ends
-- Returns {inbox, entry, event, …} of the ended entries; empty when the session has an owner, or another generation
local generation, host, running, phase = unpack(redis.call('HMGET', state, 'generation', 'host', 'running', 'phase'))
local ended = {}
if host or running or phase ~= 'open' or generation ~= ARGV[3] then return ended end
write_when_full()
for _ = 1, tonumber(ARGV[6]) do
  local id = redis.call('LPOP', queue)
  if not id then break end
  complete_into(id, 'error', ARGV[4], ARGV[5], ended)
end
redis.call('HDEL', state, 'held')
count_waiting(tenant_quotas())
publish_newest()
return ended
