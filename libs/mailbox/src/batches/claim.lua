-- claim: begin to store a batch under a name that is free.
-- ARGV 1 id · 2 ms until it expires unless more of it is stored · 3 the sealed options · 4 who detaches it ·
--      5 number of tasks · 6 number of pieces of tasks · 7 bytes of all that is sealed · 8 keyed digest of all of it
-- Returns {1} begun (again) · {0, id, state, digest} the name is in use, or this batch is stored as a whole
local id, phase, digest = unpack(redis.call('HMGET', state, 'id', 'state', 'digest'))
if id == ARGV[1] and phase == 'storing' then return {1} end
if id then return {0, id, phase, digest} end
redis.call('HSET', state, 'id', ARGV[1], 'state', 'storing', 'head', ARGV[3], 'by', ARGV[4], 'createdAt', text_of(now_ms()),
  'tasks', ARGV[5], 'pieces', ARGV[6], 'bytes', ARGV[7], 'digest', ARGV[8])
redis.call('PEXPIRE', state, ARGV[2])
return {1}
