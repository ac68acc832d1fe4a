-- acquire: make the host that holds the lock of a session's job the owner of the session, under a new fence.
-- A missing lock is set again when the session's last owner was this host.
-- KEYS 1 owners · 2 fence counter · 3 lock of the job · 4 names of the tenant's queues
-- ARGV 1 member · 2 host · 3 lock ms · 4 prefix of the queues · 5 job
-- Returns {1, fence} · {-1, holder} · {-2, holder of the session through a job in another queue}
for _, name in ipairs(redis.call('SMEMBERS', KEYS[4])) do
  local key = ARGV[4] .. ':' .. name .. ':' .. ARGV[5] .. ':lock'
  local other = key ~= KEYS[3] and redis.call('GET', key)
  if other and other ~= ARGV[2] then return {-2, other} end
end
local lock = redis.call('GET', KEYS[3])
if lock and lock ~= ARGV[2] then return {-1, lock} end
if not lock then
  local owner = redis.call('HGET', KEYS[1], ARGV[1])
  if not owner or string.match(owner, '^%d+ (.+)$') ~= ARGV[2] then return {-1, owner or ''} end
  redis.call('SET', KEYS[3], ARGV[2], 'PX', ARGV[3])
end
local fence = redis.call('INCR', KEYS[2])
redis.call('HSET', KEYS[1], ARGV[1], fence .. ' ' .. ARGV[2])
return {1, tostring(fence)}
