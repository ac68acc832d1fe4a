-- withdraw: delete the owner's delegation, so that `submit` starts nothing more in its name (MAILBOX-6).
-- ARGV 3 fence · 4 host
-- Returns {0, phase} nothing runs · {2, entry…} running, for example started by `submit` before · {-1} fenced
local owner_fence, owner_host, running, phase = unpack(redis.call('HMGET', state, 'fence', 'host', 'running', 'phase'))
if owner_fence ~= ARGV[3] or owner_host ~= ARGV[4] then return {-1} end
redis.call('HDEL', state, 'delegated')
if running then return running_entry(running) end
return {0, phase or ''}
