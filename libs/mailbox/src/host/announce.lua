-- announce: the owner says how its shell fares. An event is said once per type, fence and epoch; what comes late changes nothing.
-- ARGV 3 fence · 4 host · 5 epoch · 6 status (starting, ready) · 7 event type or '' · 8 event data JSON
--      9 epoch before the first shell of this sandbox · 10 the sandbox, once its shell is ready, or ''
-- Returns {1} · {-1} fenced
if not owns(ARGV[3], ARGV[4]) then return {-1} end
local known = redis.call('HMGET', state, 'epoch', 'status', 'announced')
if tonumber(known[1] or 0) > tonumber(ARGV[5]) then return {1} end
local of = ARGV[3] .. ' ' .. ARGV[5] .. ' '
local announced, status = known[3] or '', ARGV[6]
if string.sub(announced, 1, #of) ~= of then
  announced = of
elseif known[2] == 'ready' then
  status = 'ready'
end
if ARGV[7] ~= '' and not string.find(announced, ' ' .. ARGV[7] .. ' ', 1, true) then
  announced = announced .. ARGV[7] .. ' '
  emit(ARGV[7], '', ARGV[8])
end
redis.call('HSET', state, 'epoch', ARGV[5], 'status', status, 'base', ARGV[9], 'announced', announced)
-- Only a shell that is ready is given anything to run: from here on this is the one that an adopter has to find.
if ARGV[10] ~= '' then redis.call('HSET', state, 'shell', ARGV[4] .. ' ' .. ARGV[10]) end
ring()
return {1}
