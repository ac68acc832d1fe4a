-- submit: accept entries of one session in order, each once, however often the call arrives.
-- ARGV 3 generation · 4 inbox · 5 most waiting entries · 6 channel prefix of hosts' wake-ups · 7 wake-up ·
--      8 lease ms of a streaming writer · 9 most bytes of waiting payloads ·
--      10 prefix of hosts' heartbeats, or '' in a Cluster, where they are out of reach ·
--      11 least ms that a recent heartbeat has left · 12 most bytes of a payload in the wake-up ·
--      13 key of the tenant's quotas, or '' in a Cluster, where it is out of reach
--      Then for each entry: id · kind · sealed payload · hash of the payload · idempotency key (hashed) or '' ·
--      retry · start deadline in ms from now, or '' · its stdin (open, streamed), or ''
-- Returns a reply for each entry:
--         {1, waiting, 1 the session needs a job · 0} accepted · {2, waiting, 1 · 0} accepted before ·
--         {3, entry} of the same key · {-1} closed · {-2} unknown session ·
--         {-3, entry} the key was used for another payload · {-4, waiting} too many wait ·
--         {-5, waiting, bytes} the waiting payloads are too large ·
--         {-6, quota, used, limit} the tenant is at its quota · an error of Redis
local inbox, wake_up = ARGV[4], false
local phase, generation, host, running, unused, held, bytes_to, fence, delegated =
  unpack(redis.call('HMGET', state, 'phase', 'generation', 'host', 'running', 'unused', 'held', 'bytesTo', 'fence', 'delegated'))
local quotas, counts, session, disk = {}, nil, nil, nil
if ARGV[13] ~= '' and redis.pcall('EXISTS', ARGV[13]) == 1 then quotas, counts, session, disk = tenant_quotas() end

-- Returns the reply for the entry whose arguments begin at `i`. The last field of {1, …} and {2, …} is set at the end.
local function accept(i)
  local id, kind, payload, key = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 4]
  local record = prefix .. 'record:' .. id
  if not phase then return {-2} end
  if redis.call('EXISTS', record) == 1 then return {2, redis.call('LLEN', queue), 0} end
  if phase ~= 'open' or generation ~= ARGV[3] then return {-1} end
  if key ~= '' then
    local used = redis.call('GET', idempotency_key(key))
    if used then
      local hash, entry = string.match(used, '^(%S+) (%S+)$')
      return {hash == ARGV[i + 3] and 3 or -3, entry}
    end
  end
  if quotas.maxQueued then
    local used = tonumber(redis.call('HGET', counts, '*') or 0)
    if used >= quotas.maxQueued then return {-6, 'maxQueued', used, quotas.maxQueued} end
  end
  -- File operations and restarts can make room on the disk.
  if quotas.maxDiskBytes and kind == 'command' then
    local used = tonumber(redis.call('GET', disk) or 0)
    if used >= quotas.maxDiskBytes then return {-6, 'maxDiskBytes', used, quotas.maxDiskBytes} end
  end
  local length = redis.call('RPUSH', queue, id)
  local waiting = length - 1
  if length > tonumber(ARGV[5]) then
    redis.call('RPOP', queue)
    return {-4, waiting}
  end
  -- The state counts the bytes of all payloads since the mailbox was last empty. Each record has that count as of its
  -- own payload. So the head's record is enough to compute the waiting bytes, which include entries that were cancelled
  -- behind it.
  local bytes_before = waiting > 0 and tonumber(bytes_to) or 0
  local bytes = bytes_before + #payload
  if waiting > 0 and bytes > tonumber(ARGV[9]) then
    local head = redis.call('LINDEX', queue, 0)
    local before_head = (tonumber(redis.call('HGET', record_key(head), 'bytesTo')) or 0) - redis.call('STRLEN', payload_key(head))
    if bytes - before_head > tonumber(ARGV[9]) then
      redis.call('RPOP', queue)
      return {-5, waiting, string.format('%.0f', bytes_before - before_head)}
    end
  end
  bytes_to = string.format('%.0f', bytes)
  if unused then
    redis.call('HDEL', state, 'unused')
    redis.call('PERSIST', state)
    redis.call('PERSIST', spec_key)
    redis.call('PERSIST', stream)
    unused = false
  end
  local at = time_of(emit('command.accepted', id, '{"kind":"' .. kind .. '"}'))
  redis.call('SET', payload_key(id), payload)
  redis.call('HSET', record, 'kind', kind, 'state', 'waiting', 'inbox', inbox, 'retry', ARGV[i + 5], 'acceptedAt', at, 'bytesTo', bytes_to)
  if ARGV[i + 6] ~= '' then redis.call('HSET', record, 'deadline', string.format('%.0f', at + tonumber(ARGV[i + 6]))) end
  local input = ARGV[i + 7]
  if input ~= '' then redis.call('HSET', record, 'input', input) end
  if input == 'streamed' then redis.call('HSET', record, 'lease', string.format('%.0f', at + tonumber(ARGV[8]))) end
  -- The idempotency key stays until its entry has ended, and then as long as the record of the entry.
  if key ~= '' then
    redis.call('SET', idempotency_key(key), ARGV[i + 3] .. ' ' .. id)
    redis.call('HSET', record, 'key', key)
  end
  if not host and waiting == 0 then emit('session.queued', '', '{}') end
  -- If the owner is unreachable, the entry only waits (MAILBOX-6). It still waits when that host is lost.
  local wakes = host and not running and waiting == 0
  local started_at = ''
  local boot = wakes and ARGV[10] ~= '' and string.match(delegated or '', '^' .. fence .. ' (.+)$')
  if boot and is_listening(host, boot, ARGV[6], ARGV[10], tonumber(ARGV[11])) then
    redis.call('LPOP', queue)
    started_at = start(id, {}, fence, host)
    redis.call('HSET', state, 'running', id, 'activeAt', started_at)
    running = id
  else
    count_waiting(quotas, counts, session)
  end
  if wakes then
    wake_up = ARGV[7]
    if #payload <= tonumber(ARGV[12]) then
      wake_up = string.sub(wake_up, 1, -2) .. ',"entry":' .. cjson.encode({id = id, payload = payload, kind = kind, inbox = inbox,
        acceptedAt = at, retry = ARGV[i + 5], startedAt = started_at, fence = fence}) .. '}'
    end
  end
  return {1, waiting, 0}
end

-- An error, for example because a key has a value of another type, is the reply of its entry alone. If every entry has
-- one, the script fails with the first, by which a client recognizes a Redis that has become a replica.
local replies, failures = {}, 0
for i = 14, #ARGV, 8 do
  local done, reply = pcall(accept, i)
  replies[#replies + 1] = done and reply or {err = reply}
  if not done then failures = failures + 1 end
end
if newest then
  redis.call('HSET', state, 'bytesTo', bytes_to)
  redis.call('PUBLISH', feed, newest)
end
if wake_up then redis.call('PUBLISH', ARGV[6] .. host, wake_up) end
if phase and not host and (not held or runnable(held)) then
  for _, reply in ipairs(replies) do
    if reply[1] == 1 or reply[1] == 2 then reply[3] = 1 end
  end
end
return failures == #replies and replies[1] or replies
