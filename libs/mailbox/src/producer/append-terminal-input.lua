-- append-terminal-input: store each message to a terminal once and in order, and delete the output that its user has
-- read.
-- ARGV 3 terminal · 4 generation · 5 '1' to create it · 6 number of the first message, from 1 ·
--      7 number of the last output message read · 8 time to live ms · 9 most messages that may wait ·
--      10 channel prefix of hosts' wake-ups · 11 wake-up · 12… messages, sealed
-- Returns {1, host or '', number of the next message} stored ·
--         {0, host, next} not the next one (a call that arrived twice) · {-1} closed ·
--         {-2} unknown terminal, or it has expired · {-3, host, next} too many wait
local terminal = prefix .. 'terminal:' .. ARGV[3]
local input, output = terminal .. ':input', terminal .. ':output'
local phase, generation, host = unpack(redis.call('HMGET', state, 'phase', 'generation', 'host'))
if phase ~= 'open' or generation ~= ARGV[4] then return {-1} end
host = host or ''
local last = redis.call('HGET', terminal, 'input')
if not last then
  if ARGV[5] ~= '1' then return {-2} end
  redis.call('HSET', terminal, 'input', 0, 'output', 0, 'rawTo', 0)
end
local code, next = 1, tonumber(last or 0) + 1
local messages = #ARGV - 11
if messages > 0 then
  if tonumber(ARGV[6]) ~= next then
    code = 0
  elseif redis.call('XLEN', input) + messages > tonumber(ARGV[9]) then
    code = -3
  else
    for i = 12, #ARGV do
      redis.call('XADD', input, next .. '-0', 'd', ARGV[i])
      next = next + 1
    end
    redis.call('HSET', terminal, 'input', next - 1)
  end
end
redis.call('XTRIM', output, 'MINID', (tonumber(ARGV[7]) + 1) .. '-0')
redis.call('PEXPIRE', terminal, ARGV[8])
redis.call('PEXPIRE', input, ARGV[8])
redis.call('PEXPIRE', output, ARGV[8])
if host ~= '' then redis.call('PUBLISH', ARGV[10] .. host, ARGV[11]) end
if code == -3 then return {-3, host, next} end
return {code, host, next}
