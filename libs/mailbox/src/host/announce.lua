-- announce: record the state of the owner's shell, and its event once per type, fence and epoch. A late call does
-- nothing.
-- ARGV 3 fence · 4 host · 5 epoch · 6 status (starting, ready) · 7 event type or '' · 8 event data JSON ·
--      9 epoch before the first shell of this sandbox · 10 id of the sandbox, or '' ·
--      11 number of the call, which rises · 12 '<digest> <name>' of the image of its container, or '' ·
--      13 how this host got the shell: 'warm', 'cold <reason>', or '' when it was adopted ·
--      14 node of the cluster that has its sandbox, or '' ·
--      15 what the start of its sandbox waits for, or ''
-- Returns {1} · {-1} fenced
if not owns(ARGV[3], ARGV[4]) then return {-1} end
local stored_epoch, announced = unpack(redis.call('HMGET', state, 'epoch', 'announced'))
local fence, number, epoch, types = string.match(announced or '', '^(%d+) (%d+) (%d+) (.*)$')
local late = fence == ARGV[3] and tonumber(number) >= tonumber(ARGV[11])
if late or tonumber(stored_epoch or 0) > tonumber(ARGV[5]) then return {1} end
if fence ~= ARGV[3] or epoch ~= ARGV[5] then types = ' ' end
if ARGV[7] ~= '' and not string.find(types, ' ' .. ARGV[7] .. ' ', 1, true) then
  types = types .. ARGV[7] .. ' '
  emit(ARGV[7], '', ARGV[8])
end
announced = ARGV[3] .. ' ' .. ARGV[11] .. ' ' .. ARGV[5] .. ' ' .. types
redis.call('HSET', state, 'epoch', ARGV[5], 'status', ARGV[6], 'epochBase', ARGV[9], 'announced', announced)
-- Entries run only in a ready shell, so from here on only this sandbox may be adopted.
if ARGV[6] == 'ready' then
  redis.call('HSET', state, 'shell', ARGV[4] .. ' ' .. ARGV[10])
  if ARGV[14] ~= '' then redis.call('HSET', state, 'node', ARGV[14]) end
end
if ARGV[12] ~= '' then
  local digest, image = string.match(ARGV[12], '^(%S*) (.*)$')
  redis.call('HSET', state, 'image', image, 'imageDigest', digest)
end
if ARGV[13] ~= '' then redis.call('HSET', state, 'start', ARGV[13]) end
if ARGV[15] ~= '' then redis.call('HSET', state, 'waitsFor', ARGV[15]) else redis.call('HDEL', state, 'waitsFor') end
publish_newest()
return {1}
