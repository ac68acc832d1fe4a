-- submit: accept an entry once, however often the call arrives.
-- ARGV 3 entry · 4 generation · 5 kind · 6 sealed payload · 7 hash of the payload · 8 idempotency key (hashed) or '' ·
--      9 inbox · 10 retry · 11 start deadline in ms from now, or '' · 12 most waiting entries ·
--      13 channel prefix of hosts' wake-ups · 14 wake-up · 15 its stdin (open, streamed), or '' ·
--      16 lease ms of a streaming writer · 17 most bytes of waiting payloads ·
--      18 prefix of hosts' heartbeats, or '' in a Cluster, where they are out of reach ·
--      19 least ms that a recent heartbeat has left · 20 most bytes of a payload in the wake-up ·
--      21 key of the tenant's quotas, or '' in a Cluster, where it is out of reach
-- Returns {1, waiting, 1 the session needs a job · 0} accepted · {2, waiting, 1 · 0} accepted before ·
--         {3, entry} of the same key · {-1} closed · {-2} unknown session ·
--         {-3, entry} the key was used for another payload · {-4, waiting} too many wait ·
--         {-5, waiting, bytes} the waiting payloads are too large · {-6, quota, used, limit} the tenant is at its quota
local id = ARGV[3]
local record = prefix .. 'record:' .. id
local phase, generation, host, running, unused, held, bytes_to, fence, delegated =
  unpack(redis.call('HMGET', state, 'phase', 'generation', 'host', 'running', 'unused', 'held', 'bytesTo', 'fence', 'delegated'))
if not phase then return {-2} end
if redis.call('EXISTS', record) == 1 then
  return {2, redis.call('LLEN', queue), not host and (not held or runnable(held)) and 1 or 0}
end
if phase ~= 'open' or generation ~= ARGV[4] then return {-1} end
if ARGV[8] ~= '' then
  local used = redis.call('GET', idempotency_key(ARGV[8]))
  if used then
    local hash, entry = string.match(used, '^(%S+) (%S+)$')
    if hash == ARGV[7] then return {3, entry} end
    return {-3, entry}
  end
end
local quotas, counts, session, disk = {}, nil, nil, nil
if ARGV[21] ~= '' and redis.pcall('EXISTS', ARGV[21]) == 1 then quotas, counts, session, disk = tenant_quotas() end
if quotas.maxQueued then
  local used = tonumber(redis.call('HGET', counts, '*') or 0)
  if used >= quotas.maxQueued then return {-6, 'maxQueued', used, quotas.maxQueued} end
end
-- File operations and restarts can make room on the disk.
if quotas.maxDiskBytes and ARGV[5] == 'command' then
  local used = tonumber(redis.call('GET', disk) or 0)
  if used >= quotas.maxDiskBytes then return {-6, 'maxDiskBytes', used, quotas.maxDiskBytes} end
end
local length = redis.call('RPUSH', queue, id)
local waiting = length - 1
if length > tonumber(ARGV[12]) then
  redis.call('RPOP', queue)
  return {-4, waiting}
end
-- The state counts the bytes of all payloads since the mailbox was last empty. Each record has that count as of its own
-- payload. So the head's record is enough to compute the waiting bytes, which include entries that were cancelled
-- behind it.
local bytes_before = waiting > 0 and tonumber(bytes_to) or 0
bytes_to = bytes_before + #ARGV[6]
if waiting > 0 and bytes_to > tonumber(ARGV[17]) then
  local head = redis.call('LINDEX', queue, 0)
  local before_head = (tonumber(redis.call('HGET', record_key(head), 'bytesTo')) or 0) - redis.call('STRLEN', payload_key(head))
  if bytes_to - before_head > tonumber(ARGV[17]) then
    redis.call('RPOP', queue)
    return {-5, waiting, string.format('%.0f', bytes_before - before_head)}
  end
end
bytes_to = string.format('%.0f', bytes_to)
redis.call('HSET', state, 'bytesTo', bytes_to)
if unused then
  redis.call('HDEL', state, 'unused')
  redis.call('PERSIST', state)
  redis.call('PERSIST', spec_key)
  redis.call('PERSIST', stream)
end
local at = time_of(emit('command.accepted', id, '{"kind":"' .. ARGV[5] .. '"}'))
redis.call('SET', payload_key(id), ARGV[6])
redis.call('HSET', record, 'kind', ARGV[5], 'state', 'waiting', 'inbox', ARGV[9], 'retry', ARGV[10], 'acceptedAt', at,
  'bytesTo', bytes_to)
if ARGV[11] ~= '' then redis.call('HSET', record, 'deadline', string.format('%.0f', at + tonumber(ARGV[11]))) end
if ARGV[15] ~= '' then redis.call('HSET', record, 'input', ARGV[15]) end
if ARGV[15] == 'streamed' then redis.call('HSET', record, 'lease', string.format('%.0f', at + tonumber(ARGV[16]))) end
-- The idempotency key stays until its entry has ended, and then as long as the record of the entry.
if ARGV[8] ~= '' then
  redis.call('SET', idempotency_key(ARGV[8]), ARGV[7] .. ' ' .. id)
  redis.call('HSET', record, 'key', ARGV[8])
end
if not host and waiting == 0 then emit('session.queued', '', '{}') end
-- If the owner is unreachable, the entry only waits (MAILBOX-6). It still waits when that host is lost.
local wakes = host and not running and waiting == 0
local started_at = ''
local boot = wakes and ARGV[18] ~= '' and string.match(delegated or '', '^' .. fence .. ' (.+)$')
if boot and is_listening(host, boot, ARGV[13], ARGV[18], tonumber(ARGV[19])) then
  redis.call('LPOP', queue)
  started_at = start(id, {}, fence, host)
  redis.call('HSET', state, 'running', id, 'activeAt', started_at)
else
  count_waiting(quotas, counts, session)
end
redis.call('PUBLISH', feed, newest)
if wakes then
  local wake_up = ARGV[14]
  if #ARGV[6] <= tonumber(ARGV[20]) then
    wake_up = string.sub(wake_up, 1, -2) .. ',"entry":' .. cjson.encode({id = id, payload = ARGV[6], kind = ARGV[5], inbox = ARGV[9],
      acceptedAt = at, retry = ARGV[10], startedAt = started_at, fence = fence}) .. '}'
  end
  redis.call('PUBLISH', ARGV[13] .. host, wake_up)
end
return {1, waiting, not host and (not held or runnable(held)) and 1 or 0}
