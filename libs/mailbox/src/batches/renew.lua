-- renew: extend the lease, and say how far the batch is.
-- ARGV 1 fence · 2 host · 3 ms of the lease · 4 progress, JSON, or ''
-- Returns {1, reason of a cancellation or ''} · {0} another one drives the batch, or it is over
if not is_driver() then return {0} end
write_when_full()
redis.call('HSET', state, 'leaseUntil', text_of(now_ms() + ARGV[3]))
if ARGV[4] ~= '' then redis.call('HSET', state, 'progress', ARGV[4]) end
return {1, redis.call('HGET', state, 'cancel') or ''}
