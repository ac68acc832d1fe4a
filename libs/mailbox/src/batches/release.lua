-- release: give the lease back, so that another host can take it at once.
-- ARGV 1 fence · 2 host
-- Returns 1 given back · 0 another one drives the batch
if not is_driver() then return 0 end
write_when_full()
redis.call('HSET', state, 'state', 'waiting')
return 1
