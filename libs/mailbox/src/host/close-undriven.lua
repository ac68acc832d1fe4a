-- close-undriven: begin to close a driven generation without a live driver and without work, or only check this.
-- ARGV 3 fence · 4 host · 5 '1' to begin the close, '0' to check
-- Returns {1} this call began the close · {2} the close could begin (only a check) · {3} an earlier call began it ·
--         {0} a driver lives, or the session has work · {-1} fenced
local fence, host, phase, running, driven = unpack(redis.call('HMGET', state, 'fence', 'host', 'phase', 'running', 'driven'))
if fence ~= ARGV[3] or host ~= ARGV[4] then return {-1} end
if phase ~= 'open' then return {3} end
if not driven or running or redis.call('LLEN', queue) > 0 or redis.call('EXISTS', driver_key) == 1 then return {0} end
if ARGV[5] ~= '1' then return {2} end
write_when_full()
redis.call('HSET', state, 'phase', 'closing')
return {1}
