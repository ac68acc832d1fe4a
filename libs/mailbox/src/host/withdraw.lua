-- withdraw: delete the delegation of the owner, so that `submit` starts nothing in its name from here on (MAILBOX-6). An entry that was started before is returned.
-- ARGV 3 fence · 4 host
-- Returns {0, phase} nothing runs · {2, entry…} running · {-1} fenced
local owner_fence, owner_host, running, phase = unpack(redis.call('HMGET', state, 'fence', 'host', 'running', 'phase'))
if owner_fence ~= ARGV[3] or owner_host ~= ARGV[4] then return {-1} end
redis.call('HDEL', state, 'delegated')
if running then return running_entry(running) end
return {0, phase or ''}
