-- append: add one piece of the result lines.
-- ARGV 1 fence · 2 host · 3 number of the piece, from 1 · 4 number of lines that end in it · 5 the piece, sealed ·
--      6 most bytes of all pieces
-- Returns 1 stored (again) · 0 another one drives the batch, or an earlier piece is missing · -1 no room
if not is_driver() then return 0 end
-- A batch that was cancelled ends also when Redis is full.
if redis.call('HEXISTS', state, 'cancel') == 1 then write_when_full() end
local count, number = redis.call('XLEN', results), tonumber(ARGV[3])
if number <= count then return 1 end
if number > count + 1 then return 0 end
if (redis.call('HGET', state, 'resultBytes') or 0) + #ARGV[5] > tonumber(ARGV[6]) then return -1 end
redis.call('XADD', results, number .. '-0', 'l', ARGV[4], 'd', ARGV[5])
redis.call('HINCRBY', state, 'lines', ARGV[4])
if ARGV[4] ~= '0' then redis.call('HDEL', state, 'takes') end
redis.call('HINCRBY', state, 'resultBytes', #ARGV[5])
return 1
