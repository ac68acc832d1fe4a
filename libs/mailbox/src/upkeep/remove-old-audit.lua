-- remove-old-audit: remove the oldest entries of the audit in Redis, and store marks that tell which they were.
-- KEYS 1 records · 2 heads · 3 removed
-- ARGV 1 id of the oldest entry, as it was listed · 2 id of the last one to remove · 3 bytes that are
--      removed of those that count · 4 mark of the stream · then chain and mark, of each chain
-- Returns 1 removed · 0 another host has removed some
local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
if not oldest or oldest[1] ~= ARGV[1] then return 0 end
-- The removal is the first write, because Redis accepts it also when it is full.
redis.call('XTRIM', KEYS[1], 'MINID', ARGV[2])
redis.call('XDEL', KEYS[1], ARGV[2])
redis.pcall('HINCRBY', KEYS[3], 'bytes', -ARGV[3])
redis.call('HSET', KEYS[3], 'stream', ARGV[4])
for i = 5, #ARGV, 2 do redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1]) end
return 1
