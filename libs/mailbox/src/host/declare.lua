-- declare: restore the generation, owner and running entry of a live shell in a Redis with other data. Stored offsets
-- are only raised.
-- ARGV 3 fence · 4 host · 5 generation · 6 '<host> <sandbox>' of its ready shell, or '' · 7 epoch ·
--      8 epoch before this sandbox · 9 Result for another entry, if Redis has one as running · 10 retention ms ·
--      11 sealed spec · 12 placement class · 13 placement JSON · 14 created ms · 15 the running entry, or '' ·
--      16 kind · 17 inbox · 18 accepted ms · 19 started ms · 20 retry · 21 payload · 22 stdout · 23 stderr · 24 seq ·
--      25 '1' when the generation is driven, or ''
-- Returns {1} · {-1} fenced: another owner has a higher fence, or the session has a later generation
local fence, host, id = ARGV[3], ARGV[4], ARGV[15]
local stored, owner, phase, generation, running, released, epoch =
  unpack(redis.call('HMGET', state, 'fence', 'host', 'phase', 'generation', 'running', 'released', 'epoch'))
if tonumber(stored or 0) > tonumber(fence) or tonumber(generation or 0) > tonumber(ARGV[5]) then return {-1} end
if stored == fence and (owner ~= host or released == fence) then return {-1} end
if generation == ARGV[5] and phase == 'closed' then return {-1} end
write_when_full()
if generation ~= ARGV[5] then
  redis.call('HDEL', state, 'running', 'held', 'announced', 'reported', 'epoch', 'loss', 'driven')
  redis.call('HSET', state, 'phase', 'open', 'generation', ARGV[5], 'digest', '', 'class', ARGV[12], 'placement', ARGV[13],
    'createdAt', ARGV[14], 'activeAt', string.format('%.0f', now_ms()))
  redis.call('SET', spec_key, ARGV[11])
  if ARGV[25] ~= '' then redis.call('HSET', state, 'driven', 1) end
  running, epoch, stored = false, false, false
end
redis.call('HSET', state, 'fence', fence, 'host', host)
if ARGV[6] ~= '' and (stored ~= fence or tonumber(epoch or 0) < tonumber(ARGV[7])) then
  redis.call('HSET', state, 'epoch', ARGV[7], 'epochBase', ARGV[8], 'shell', ARGV[6], 'status', 'ready',
    'announced', fence .. ' 0 ' .. ARGV[7] .. ' ')
end
redis.call('HDEL', state, 'unused', 'delegated')
redis.call('PERSIST', state)
redis.call('PERSIST', spec_key)
redis.call('PERSIST', stream)
if id ~= '' then
  local record = record_key(id)
  local entry_state, seq = unpack(redis.call('HMGET', record, 'state', 'seq'))
  if entry_state ~= 'ended' then
    if running and running ~= id then complete(running, 'lost', ARGV[9], ARGV[10]) end
    if redis.call('LREM', queue, 0, id) > 0 then count_waiting(tenant_quotas()) end
    if not entry_state then
      redis.call('HSET', record, 'kind', ARGV[16], 'inbox', ARGV[17], 'acceptedAt', ARGV[18], 'retry', ARGV[20])
      redis.call('SET', payload_key(id), ARGV[21])
      emit('command.accepted', id, '{"kind":"' .. ARGV[16] .. '"}')
    end
    if entry_state ~= 'running' then
      redis.call('HSET', record, 'state', 'running', 'startedAt', ARGV[19])
      emit('command.started', id, '{"hostId":"' .. host .. '"}')
    end
    if not seq or tonumber(seq) < tonumber(ARGV[24]) then
      redis.call('HSET', record, 'stdout', ARGV[22], 'stderr', ARGV[23], 'seq', ARGV[24])
    end
    redis.call('HSET', record, 'fence', fence, 'host', host)
    redis.call('HSET', state, 'running', id)
  end
end
publish_newest()
return {1}
