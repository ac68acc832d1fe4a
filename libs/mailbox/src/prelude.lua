-- Shared by every mailbox script: it is put in front of each of them.
-- KEYS  1 queue · 2 state · 3 stream, all of one session (one hash tag; keys built from ARGV[1] share it)
-- ARGV  1 key prefix of the session · 2 feed channel · then the script's own
local queue, state, stream = KEYS[1], KEYS[2], KEYS[3]
local prefix, feed = ARGV[1], ARGV[2]

local function record_key(id) return prefix .. 'record:' .. id end
local function answer_key(id) return prefix .. 'answer:' .. id end
local function input_key(id) return prefix .. 'input:' .. id end

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- The feed receives the id of the newest entry, once a script and after all of its entries are in the stream.
local newest = false
local function emit(type, id, data)
  newest = redis.call('XADD', stream, '*', 't', type, 'c', id, 'd', data)
  return newest
end
local function publish_newest() if newest then redis.call('PUBLISH', feed, newest) end end

-- A full Redis refuses a script's first write, unless that one frees memory: what brings an entry or a life to its end goes on.
local function write_when_full() redis.call('DEL', prefix .. 'nothing') end

-- Only the newest owner writes: fence and host must both be the stored ones.
local function owns(fence, host)
  local owner = redis.call('HMGET', state, 'fence', 'host')
  return owner[1] == fence and owner[2] == host
end

-- The time of an event, ms: the clock is read once for both.
local function time_of(event) return string.match(event, '^%d+') end

-- The only place where an entry becomes terminal. What is kept of it is small: its payload goes at once, before anything is
-- written, which a full Redis allows. `kept`: kind, inbox, at, started, stdout, stderr, cancel, seq of its record, from a caller that
-- has read and removed it, its input too.
local function complete(id, outcome, result, retention_ms, kept)
  local record = record_key(id)
  if not kept then
    kept = redis.call('HMGET', record, 'kind', 'inbox', 'at', 'started', 'stdout', 'stderr', 'cancel', 'seq')
    redis.call('DEL', record, input_key(id))
  end
  local event = emit('command.completed', id, result)
  redis.call('HSET', record, 'state', 'ended', 'event', event, 'outcome', outcome, 'kind', kept[1] or '', 'inbox', kept[2] or '',
    'at', kept[3] or '', 'started', kept[4] or '', 'stdout', kept[5] or 0, 'stderr', kept[6] or 0, 'cancel', kept[7] or '',
    'seq', kept[8] or 0)
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

-- What a host is told of an entry: `r` is its record, as read_entry has it.
local function to_reply(code, id, r)
  return {code, id, r[12] or '', r[1] or '', r[2] or '', r[3] or '0', r[4] or '0',
    r[5] or '0', r[6] or '0', r[7] or '0', r[8] or '', r[9] or '', r[10] or '0', r[11] or ''}
end

local function read_entry(id, ...)
  return redis.call('HMGET', record_key(id), 'kind', 'inbox', 'at', 'started', 'stdout', 'stderr', 'seq', 'retry', 'cancel', 'fence', 'host', 'payload', ...)
end

-- Taking is starting: record, mark in the stream and payload in one step. Nothing may run when it is called.
-- Adds to `changes` what the caller has to write into the state. Returns what a host is told:
-- 1 started now · 3 its start deadline has passed, not started · {0, life} nothing to start: nothing waits, or the life is ending
local function start_next(fence, host, life, changes)
  local id = life == 'open' and redis.call('LPOP', queue)
  if not id then return {0, life or ''} end
  local entry = read_entry(id, 'deadline')
  if entry[13] and tonumber(entry[13]) < now_ms() then
    redis.call('LPUSH', queue, id)
    return to_reply(3, id, entry)
  end
  local at = time_of(emit('command.started', id, '{"hostId":"' .. host .. '"}'))
  redis.call('HSET', record_key(id), 'state', 'running', 'fence', fence, 'host', host, 'started', at)
  changes[#changes + 1] = 'run'
  changes[#changes + 1] = id
  changes[#changes + 1] = 'active'
  changes[#changes + 1] = at
  entry[4], entry[10], entry[11] = at, fence, host
  return to_reply(1, id, entry)
end

-- Output entries from ARGV[first] on, in fives: stream (1, 2) · seq · raw from · raw to · entry. All are stored, or none:
-- each must begin at the offset that is stored for its stream, and be the next of its seq (an entry may cover no raw byte at all).
-- `stdout`, `stderr`, `seq` are the stored ones. Returns whether they follow, both offsets and the seq behind them.
local function follows(first, stdout, stderr, seq)
  local after = {tonumber(stdout or 0), tonumber(stderr or 0)}
  local before = {after[1], after[2]}
  seq = tonumber(seq or 0)
  for i = first, #ARGV, 5 do
    local s = tonumber(ARGV[i])
    if tonumber(ARGV[i + 1]) ~= seq or tonumber(ARGV[i + 2]) ~= after[s] then return false, before, seq end
    after[s] = tonumber(ARGV[i + 3])
    seq = seq + 1
  end
  return true, after, seq
end

local function emit_output(id, first)
  for i = first, #ARGV, 5 do emit('command.output', id, ARGV[i + 4]) end
end

