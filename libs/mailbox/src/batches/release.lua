-- release: give the lease back, so that another host can take it at once.
-- ARGV 1 fence · 2 host · 3 1: this driver counts among those that stored no line, 0: it does not
-- Returns 1 given back · 0 another one drives the batch
if not is_driver() then return 0 end
write_when_full()
if ARGV[3] == '0' and redis.call('HEXISTS', state, 'takes') == 1 then redis.call('HINCRBY', state, 'takes', -1) end
redis.call('HSET', state, 'state', 'waiting')
return 1
