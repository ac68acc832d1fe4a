-- acquire: make the host that holds the lock of a session's job the owner of the session, under a new fence.
-- A missing lock is set again when the session's last owner was this host.
-- KEYS 1 owners · 2 fence counter · 3 lock of the job · 4… locks of jobs that the session may have in other queues
-- ARGV 1 member · 2 host · 3 lock ms
-- Returns {1, fence} · {-1, holder} · {-2, holder of the session through a job in another queue}
for i = 4, #KEYS do
  local other = redis.call('GET', KEYS[i])
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
