-- commit: let a batch wait for a driver, once all of it is stored.
-- ARGV 1 id · 2 number of pieces of files
-- Returns 1 it waits, or was taken · 0 it is unknown, not whole, or cancelled
local id, phase, pieces, started = unpack(redis.call('HMGET', state, 'id', 'state', 'pieces', 'startedAt'))
if id ~= ARGV[1] or (phase == 'ended' and not started) then return 0 end
if phase ~= 'storing' then return 1 end
if redis.call('HLEN', tasks) ~= tonumber(pieces) or redis.call('HLEN', files) ~= tonumber(ARGV[2]) then return 0 end
redis.call('HSET', state, 'state', 'waiting')
for _, key in ipairs(KEYS) do redis.call('PERSIST', key) end
return 1
