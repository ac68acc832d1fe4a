-- append-terminal-output: store each message of a terminal once and in order, and delete the input that the terminal
-- has taken.
-- ARGV 3 fence · 4 host · 5 terminal · 6 number of the last input message taken ·
--      7 number of the first message, from 1 · 8 raw offset after the messages · 9 most messages that may wait ·
--      10 channel of the terminal's feed · 11… messages, sealed
-- Returns {1, number of the next message} stored · {0, next} not the next one (a call that arrived twice) ·
--         {-1} fenced · {-2} the terminal has expired: its user is gone · {-3, next} too many wait
if not owns(ARGV[3], ARGV[4]) then return {-1} end
local terminal = prefix .. 'terminal:' .. ARGV[5]
local input, output = terminal .. ':input', terminal .. ':output'
local left = redis.call('PTTL', terminal)
if left < 1 then return {-2} end
redis.call('XTRIM', input, 'MINID', (tonumber(ARGV[6]) + 1) .. '-0')
local next = tonumber(redis.call('HGET', terminal, 'output') or 0) + 1
local messages = #ARGV - 10
if messages == 0 then return {1, next} end
if tonumber(ARGV[7]) ~= next then return {0, next} end
if redis.call('XLEN', output) + messages > tonumber(ARGV[9]) then return {-3, next} end
for i = 11, #ARGV do
  redis.call('XADD', output, next .. '-0', 'd', ARGV[i])
  next = next + 1
end
redis.call('HSET', terminal, 'output', next - 1, 'rawTo', ARGV[8])
redis.call('PEXPIRE', output, left)
redis.call('PUBLISH', ARGV[10], next - 1)
return {1, next}
