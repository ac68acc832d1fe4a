-- store: add pieces of tasks or files to a batch that is being stored.
-- ARGV 1 id · 2 ms until it expires unless more of it is stored · 3 `tasks` or `files` · then pairs of field and value
-- Returns 1 stored · 0 it is not being stored
local id, phase = unpack(redis.call('HMGET', state, 'id', 'state'))
if id ~= ARGV[1] or phase ~= 'storing' then return 0 end
local key = ARGV[3] == 'tasks' and tasks or files
for at = 4, #ARGV, 2 do redis.call('HSET', key, ARGV[at], ARGV[at + 1]) end
expire_all(ARGV[2])
return 1
