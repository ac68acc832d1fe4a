-- Shared by every mailbox script: it is put in front of each of them.
-- KEYS  1 queue · 2 state · 3 stream, all of one session (one hash tag; keys built from ARGV[1] share it)
-- ARGV  1 key prefix of the session · 2 feed channel · then the script's own
local queue, state, stream = KEYS[1], KEYS[2], KEYS[3]
local prefix, feed = ARGV[1], ARGV[2]

local function record_key(id) return prefix .. 'record:' .. id end
local function payload_key(id) return prefix .. 'payload:' .. id end
local function answer_key(id) return prefix .. 'answer:' .. id end

-- Most of what a script costs is the number of its calls: what is needed twice is asked for once.
local now = false
local function now_ms()
  if not now then
    local time = redis.call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  return now
end

-- Followers hear of the newest entry once a script, after everything it says is there.
local newest = false
local function emit(type, id, data)
  newest = redis.call('XADD', stream, '*', 't', type, 'c', id, 'd', data)
  return newest
end
local function ring() if newest then redis.call('PUBLISH', feed, newest) end end

-- A full Redis refuses a script's first write, unless that one frees memory: what brings an entry or a life to its end goes on.
local function write_when_full() redis.call('DEL', prefix .. 'nothing') end

-- Only the newest owner writes: fence and host must both be the stored ones. Answers with what else is known then, or with nothing.
local function read_as_owner(fence, host)
  local known = redis.call('HMGET', state, 'fence', 'host', 'run', 'life')
  if known[1] ~= fence or known[2] ~= host then return nil end
  return {run = known[3], life = known[4]}
end
local function touch() redis.call('HSET', state, 'active', now_ms()) end

-- Output entries from ARGV[first] on, in fives: stream (1, 2) · seq · raw from · raw to · entry. All are stored, or none:
-- each must begin at the offset that is stored for its stream, and be the next of its seq (an entry may cover no raw byte at all).
-- `known`: stdout, stderr and seq of the record. Answers with what is to be stored, or with nothing; and with the stored offsets.
local function read_output(known, first)
  local before = {tonumber(known[1] or 0), tonumber(known[2] or 0)}
  local output = {first = first, before[1], before[2], seq = tonumber(known[3] or 0)}
  for i = first, #ARGV, 5 do
    local s = tonumber(ARGV[i])
    if tonumber(ARGV[i + 1]) ~= output.seq or tonumber(ARGV[i + 2]) ~= output[s] then return nil, before end
    output[s] = tonumber(ARGV[i + 3])
    output.seq = output.seq + 1
  end
  return output, before
end

local function emit_output(id, output)
  for i = output.first, #ARGV, 5 do emit('command.output', id, ARGV[i + 4]) end
end

local function add_output_fields(fields, output)
  if output.first > #ARGV then return end
  for _, value in ipairs({'stdout', output[1], 'stderr', output[2], 'seq', output.seq}) do fields[#fields + 1] = value end
end

-- The only place where an entry becomes terminal. `output`: what it has said last (see read_output).
local function complete(id, outcome, result, retention_ms, output)
  local record = record_key(id)
  redis.call('DEL', payload_key(id))
  if output then emit_output(id, output) end
  local event = emit('command.completed', id, result)
  local fields = {'state', 'ended', 'event', event, 'outcome', outcome}
  if output then add_output_fields(fields, output) end
  redis.call('HSET', record, unpack(fields))
  redis.call('PEXPIRE', record, retention_ms)
  return event
end

-- Ends up to `most` waiting entries as cancellations; adds inbox, entry and event of each to `ended`.
local function cancel_waiting(most, result, retention_ms, ended)
  for _ = 1, most do
    local id = redis.call('LPOP', queue)
    if not id then return end
    ended[#ended + 1] = redis.call('HGET', record_key(id), 'inbox') or ''
    ended[#ended + 1] = id
    ended[#ended + 1] = complete(id, 'cancellation', result, retention_ms)
    touch()
  end
end

-- The owner is one no more; what it may still send under its fence comes too late, `adopt` included.
local function end_ownership()
  local fence = redis.call('HGET', state, 'fence')
  if fence then redis.call('HSET', state, 'released', fence) end
  redis.call('HDEL', state, 'host', 'shell')
end

local function end_life(data, retention_ms)
  redis.call('HSET', state, 'life', 'closed')
  emit('session.closed', '', data)
  redis.call('PEXPIRE', state, retention_ms)
  redis.call('PEXPIRE', stream, retention_ms)
end

-- What a host is told of an entry.
local function read_entry(id)
  return redis.call('HMGET', record_key(id), 'kind', 'inbox', 'at', 'started', 'stdout', 'stderr', 'seq', 'retry', 'cancel', 'fence', 'host', 'deadline')
end
local function entry_reply(code, id, r)
  r = r or read_entry(id)
  return {code, id, redis.call('GET', payload_key(id)) or '', r[1] or '', r[2] or '', r[3] or '0', r[4] or '0',
    r[5] or '0', r[6] or '0', r[7] or '0', r[8] or '', r[9] or '', r[10] or '0', r[11] or ''}
end

-- Taking is starting: record, mark in the stream and payload in one step; whoever calls this notes in the state what runs now.
-- 1 started now · 2 running already (a call that arrived twice) · 3 its start deadline has passed, not started
-- {0, life} nothing to start: nothing waits, or the life is ending
local function take_head(fence, host, owner)
  if owner.run then return entry_reply(2, owner.run) end
  local id = owner.life == 'open' and redis.call('LPOP', queue)
  if not id then return {0, owner.life or ''} end
  local at = now_ms()
  local r = read_entry(id)
  if r[12] and tonumber(r[12]) < at then
    redis.call('LPUSH', queue, id)
    return entry_reply(3, id, r)
  end
  redis.call('HSET', record_key(id), 'state', 'running', 'fence', fence, 'host', host, 'started', at)
  emit('command.started', id, '{"hostId":"' .. host .. '"}')
  r[4], r[10], r[11] = string.format('%.0f', at), fence, host
  return entry_reply(1, id, r)
end
