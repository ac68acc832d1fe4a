-- end-call: remove the job of a call that a host holds.
-- KEYS 1 lock of the job · 2 active jobs of the queue · 3 job
-- ARGV 1 host · 2 id of the job
-- Returns 1 removed · 0 the host does not hold it
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1], KEYS[3])
redis.call('LREM', KEYS[2], 1, ARGV[2])
return 1
