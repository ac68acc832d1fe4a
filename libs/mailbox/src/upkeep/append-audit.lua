-- append-audit: add records of one chain to the audit in Redis, behind those that it has.
-- KEYS 1 records · 2 heads · 3 removed
-- ARGV 1 chain · 2 its head in Redis as the caller knows it, or '' · 3 its new head · 4 number of the first record ·
--      5 the records, sealed
-- Returns {1, bytes of all records, or more than any limit if they have to be counted} added ·
--      {0, head} the chain has this head, or none ('')
local head = redis.call('HGET', KEYS[2], ARGV[1]) or ''
if head ~= ARGV[2] then return {0, head} end
redis.call('XADD', KEYS[1], '*', 'c', ARGV[1], 'f', ARGV[4], 'd', ARGV[5])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
-- A size that somebody has overwritten may be no number, or one that cannot grow.
local bytes = redis.pcall('HINCRBY', KEYS[3], 'bytes', #ARGV[5])
return {1, type(bytes) == 'number' and bytes or 2 ^ 53}
