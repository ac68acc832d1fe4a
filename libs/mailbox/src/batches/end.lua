-- end: end a batch, whose driver has stored all its results.
-- ARGV 1 fence · 2 host · 3 retention ms · 4 what stopped it or '' · 5 totals, JSON · 6 progress, JSON ·
--      7 why it failed as a whole, sealed, or ''
-- Returns 1 ended (again) · 0 another one drives the batch
local phase, fence = unpack(redis.call('HMGET', state, 'state', 'fence'))
if phase == 'ended' and fence == ARGV[1] then return 1 end
if not is_driver() then return 0 end
finish(ARGV[3], ARGV[4])
redis.call('HSET', state, 'totals', ARGV[5], 'progress', ARGV[6], 'failure', ARGV[7])
return 1
