-- note: replace the manifest of a batch.
-- ARGV 1 fence · 2 host · 3 the manifest, sealed
-- Returns 1 stored · 0 another one drives the batch
if not is_driver() then return 0 end
write_when_full()
redis.call('HINCRBY', state, 'resultBytes', #ARGV[3] - redis.call('HSTRLEN', state, 'manifest'))
redis.call('HSET', state, 'manifest', ARGV[3])
return 1
