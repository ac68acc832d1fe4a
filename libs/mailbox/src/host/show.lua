-- show: what a terminal shows, each message once and in order; and how much of what was typed it has taken.
-- ARGV 3 fence · 4 host · 5 terminal · 6 number of the last typed message that it has taken · 7 number of the first message, from 1
--      8 raw offset behind the messages · 9 the most messages that may wait · 10 channel to tell · 11… messages, sealed
-- Returns {1, next} stored; next: the number of the message that comes next · {0, next} not the next one (a call that arrived twice)
--         {-1} fenced · {-2} nobody is there any more · {-3, next} too many wait
if not owns(ARGV[3], ARGV[4]) then return {-1} end
local terminal = prefix .. 'terminal:' .. ARGV[5]
local typed, shown = terminal .. ':typed', terminal .. ':shown'
local left = redis.call('PTTL', terminal)
if left < 1 then return {-2} end
redis.call('XTRIM', typed, 'MINID', (tonumber(ARGV[6]) + 1) .. '-0')
local next = tonumber(redis.call('HGET', terminal, 'shown') or 0) + 1
local messages = #ARGV - 10
if messages == 0 then return {1, next} end
if tonumber(ARGV[7]) ~= next then return {0, next} end
if redis.call('XLEN', shown) + messages > tonumber(ARGV[9]) then return {-3, next} end
for i = 11, #ARGV do
  redis.call('XADD', shown, next .. '-0', 'd', ARGV[i])
  next = next + 1
end
redis.call('HSET', terminal, 'shown', next - 1, 'raw', ARGV[8])
redis.call('PEXPIRE', shown, left)
redis.call('PUBLISH', ARGV[10], next - 1)
return {1, next}
