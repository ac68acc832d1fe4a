-- take: become the driver of a batch that has none, or whose driver has not renewed its lease, or was an earlier
-- process of this host.
-- ARGV 1 host · 2 id of this call · 3 ms of the lease
-- Returns {1, id, fence, pieces of results, takes in a row, with this one, without a new line} taken (again) ·
--      {0, state or '', ms until its lease ends} not taken
local id, phase, fence, taker, lease_until, started, host =
  unpack(redis.call('HMGET', state, 'id', 'state', 'fence', 'taker', 'leaseUntil', 'startedAt', 'host'))
local now = now_ms()
if phase == 'running' and taker == ARGV[2] then
  return {1, id, fence, redis.call('XLEN', results), tonumber(redis.call('HGET', state, 'takes') or 0)}
end
local left = phase == 'running' and host ~= ARGV[1] and tonumber(lease_until or 0) - now or 0
if (phase ~= 'waiting' and phase ~= 'running') or left > 0 then return {0, phase or '', text_of(left)} end
write_when_full()
fence = redis.call('HINCRBY', state, 'fence', 1)
redis.call('HSET', state, 'state', 'running', 'host', ARGV[1], 'taker', ARGV[2], 'leaseUntil', text_of(now + ARGV[3]))
if not started then redis.call('HSET', state, 'startedAt', text_of(now)) end
-- The last driver may have died between the pieces of a line. The mark makes readers drop these pieces.
local last = redis.call('XREVRANGE', results, '+', '-', 'COUNT', 1)[1]
if last and last[2][2] == '0' then redis.call('XADD', results, redis.call('XLEN', results) + 1 .. '-0', 'l', '-1', 'd', '') end
return {1, id, text_of(fence), redis.call('XLEN', results), redis.call('HINCRBY', state, 'takes', 1)}
