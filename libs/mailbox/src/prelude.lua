-- Shared by every mailbox script: it is put in front of each of them.
-- KEYS  1 queue · 2 state · 3 stream, all of one session (one hash tag; keys built from ARGV[1] share it)
-- ARGV  1 key prefix of the session · 2 feed channel · then the script's own
local queue, state, stream = KEYS[1], KEYS[2], KEYS[3]
local prefix, feed = ARGV[1], ARGV[2]

local function record_key(id) return prefix .. 'record:' .. id end
local function payload_key(id) return prefix .. 'payload:' .. id end
local function answer_key(id) return prefix .. 'answer:' .. id end

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Followers hear of the newest entry once a script, after everything it says is there.
local newest = false
local function emit(type, id, data)
  newest = redis.call('XADD', stream, '*', 't', type, 'c', id, 'd', data)
  return newest
end
local function ring() if newest then redis.call('PUBLISH', feed, newest) end end

-- Only the newest owner writes: fence and host must both be the stored ones.
local function owns(fence, host)
  local owner = redis.call('HMGET', state, 'fence', 'host')
  return owner[1] == fence and owner[2] == host
end

-- The only place where an entry becomes terminal.
local function complete(id, outcome, result, retention_ms)
  local event = emit('command.completed', id, result)
  local record = record_key(id)
  redis.call('HSET', record, 'state', 'ended', 'event', event, 'outcome', outcome)
  redis.call('PEXPIRE', record, retention_ms)
  redis.call('DEL', payload_key(id))
  redis.call('HSET', state, 'active', now_ms())
  return event
end

-- What a host is told of an entry.
local function entry_reply(code, id)
  local r = redis.call('HMGET', record_key(id), 'kind', 'inbox', 'at', 'started', 'stdout', 'stderr', 'seq', 'retry', 'cancel', 'fence')
  return {code, id, redis.call('GET', payload_key(id)) or '', r[1] or '', r[2] or '', r[3] or '0', r[4] or '0',
    r[5] or '0', r[6] or '0', r[7] or '0', r[8] or '', r[9] or '', r[10] or '0'}
end

-- Taking is starting: record, mark in the stream and payload in one step.
-- 1 started now · 2 running already (a call that arrived twice) · 3 its start deadline has passed, not started · 0 nothing waits
local function take_head(fence, host)
  local running = redis.call('HGET', state, 'run')
  if running then return entry_reply(2, running) end
  local id = redis.call('LINDEX', queue, 0)
  if not id then return {0} end
  local at = now_ms()
  local deadline = redis.call('HGET', record_key(id), 'deadline')
  if deadline and tonumber(deadline) < at then return entry_reply(3, id) end
  redis.call('LPOP', queue)
  redis.call('HSET', state, 'run', id)
  redis.call('HSET', record_key(id), 'state', 'running', 'fence', fence, 'started', at)
  emit('command.started', id, '{"hostId":"' .. host .. '"}')
  return entry_reply(1, id)
end

-- Output entries from ARGV[first] on, in fours: stream (1, 2) · raw from · raw to · entry. All are stored, or none:
-- each must begin at the offset that is stored for its stream. Returns whether they were, and both offsets.
local function store(id, first)
  local record = record_key(id)
  local known = redis.call('HMGET', record, 'stdout', 'stderr', 'seq')
  local before = {tonumber(known[1] or 0), tonumber(known[2] or 0)}
  local after = {before[1], before[2]}
  local count = 0
  for i = first, #ARGV, 4 do
    local s = tonumber(ARGV[i])
    if tonumber(ARGV[i + 1]) ~= after[s] then return false, before end
    after[s] = tonumber(ARGV[i + 2])
    count = count + 1
  end
  if count == 0 then return true, after end
  for i = first, #ARGV, 4 do emit('command.output', id, ARGV[i + 3]) end
  redis.call('HSET', record, 'stdout', after[1], 'stderr', after[2], 'seq', tonumber(known[3] or 0) + count)
  return true, after
end

