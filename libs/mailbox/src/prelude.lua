-- Code that the mailbox scripts share. Each script begins with the parts that it uses (compose-script.ts).
-- KEYS  1 state of the session (its other keys are built from ARGV[1], and have the same hash tag)
-- ARGV  1 key prefix of the session · 2 feed channel · then the script's own
--
-- MAILBOX-1. Every script is atomic, and safe when it arrives twice: at once, or late.
-- MAILBOX-2. A host writes only under the stored fence and host.
-- MAILBOX-3. An entry gets exactly one terminal event, which only write_end() writes.
-- MAILBOX-4. An entry starts before its first byte reaches a shell, and once. Only `rerun` starts an idempotent entry
--            again, and only `put-back` makes an entry the head again, for its second attempt.
-- MAILBOX-5. Only the head is started, checked for admission or held. A held head waits for an answer to release it.
-- MAILBOX-6. Only the owner starts entries, or `submit` in its name while `delegated` has its fence and it is
--            reachable: its shell is ready, nothing runs or waits, and it admits everything. The owner withdraws this
--            before it leaves the session.
-- MAILBOX-7. While the tenant has a quota of waiting entries, each script that changes the queue writes the session's
--            number, and adds the difference to the tenant's sum. So the sum is exact, whatever ends an entry. `submit`
--            and `sweep` begin to count a session, also for a quota that was set after entries began to wait: the field
--            `counted` of its state spares the scripts that start entries a look at the quotas of all other sessions.
local state = KEYS[1]
local prefix, feed = ARGV[1], ARGV[2]
local queue = prefix .. 'queue'
local stream = prefix .. 'stream'

local function record_key(id) return prefix .. 'record:' .. id end
local function payload_key(id) return prefix .. 'payload:' .. id end
local function reply_key(id) return prefix .. 'reply:' .. id end
local function idempotency_key(hash) return prefix .. 'key:' .. hash end
local function input_key(id) return prefix .. 'input:' .. id end
local driver_key = prefix .. 'driver'
-- Redis keeps only hashes with short values compact, so the state holds no long ones.
local spec_key = prefix .. 'spec'

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- The feed receives the id of the last stream entry of the script, once all its entries are in the stream, and whether
-- they are output alone.
local newest = false
local function emit(type, id, data)
  newest = redis.call('XADD', stream, '*', 't', type, 'c', id, 'd', data)
  return newest
end
local function publish_newest() if newest then redis.call('PUBLISH', feed, newest) end end
local function publish_output() if newest then redis.call('PUBLISH', feed, newest .. ' output') end end

-- A full Redis refuses a script whose first write needs memory. So scripts that end something begin with this write.
local function write_when_full() redis.call('DEL', prefix .. 'nothing') end

-- Returns the quotas of the session's tenant or an empty table, the key and the field in which its waiting entries are
-- counted, and, if it has quotas, the key with its use of disk. In a Cluster these keys are out of reach, and no tenant
-- has such quotas.
local function tenant_quotas()
  local keyspace, tenant, session = string.match(prefix, '^(.+):{([^:]+):(.+)}:$')
  local counts = keyspace .. ':{' .. tenant .. ':}:waiting'
  local text = redis.pcall('GET', keyspace .. ':{x0}:tenant:' .. tenant .. ':quotas')
  if type(text) ~= 'string' then return {}, counts, session end
  return cjson.decode(text), counts, session, keyspace .. ':{x0}:tenant:' .. tenant .. ':disk'
end

-- MAILBOX-7: counts the waiting entries of the session.
local function count_waiting(quotas, counts, session)
  if not quotas.maxQueued then return end
  local before, now = tonumber(redis.call('HGET', counts, session) or 0), redis.call('LLEN', queue)
  if now == before then return end
  if now == 0 then redis.call('HDEL', counts, session) else redis.call('HSET', counts, session, now) end
  redis.call('HSET', state, 'counted', 1)
  if redis.call('HINCRBY', counts, '*', now - before) == 0 then redis.call('HDEL', counts, '*') end
end

local function owns(fence, host)
  local owner = redis.call('HMGET', state, 'fence', 'host')
  return owner[1] == fence and owner[2] == host
end

-- Returns the ms of an event from its id, so that the clock is read once. Times have 13 digits until the year 2286.
local function time_of(event) return string.sub(event, 1, 13) end

-- Adds the first attempt to the Result of an entry that waited for its second. A cancellation keeps its outcome; any
-- other end is that of the first attempt, with the reason `refused`. The later of two equal names in JSON counts.
local function after_first(outcome, result, first_end, first_fields)
  if outcome == 'cancellation' then return outcome, string.sub(result, 1, -2) .. ',' .. string.sub(first_fields, 2) end
  local given = cjson.decode(result)
  local why = type(given.error) == 'table' and given.error.message or given.stderr or ''
  why = string.match(why, '^Denied: (.-)\n?$') or why
  return 'failure', string.sub(first_end, 1, -2) .. ',"refused":' .. cjson.encode(why) .. ',' .. string.sub(first_fields, 2)
end

-- MAILBOX-3: ends an entry. The caller has read and deleted its record and payload before the first write, so that a
-- full Redis accepts the script. The new record has the offsets, if there is output, and the fields of `kept`.
local function write_end(record, id, outcome, result, retention_ms, stdout, stderr, seq, key, kept)
  local event = emit('command.completed', id, result)
  if seq and seq ~= '0' then
    redis.call('HSET', record, 'state', 'ended', 'event', event, 'outcome', outcome, 'stdout', stdout or 0, 'stderr', stderr or 0, 'seq', seq,
      unpack(kept))
  else
    redis.call('HSET', record, 'state', 'ended', 'event', event, 'outcome', outcome, unpack(kept))
  end
  redis.call('PEXPIRE', record, retention_ms)
  if key then redis.call('PEXPIRE', prefix .. 'key:' .. key, retention_ms) end
  return event
end

-- Returns for how many ms a person was asked about an entry, until `at` or an answer. `asked` is a field of the record.
local function asked_ms(asked, at)
  local from, to = string.match(asked or '', '^(%d+) ?(%d*)$')
  return from and math.max(0, (tonumber(to) or at) - from) or 0
end

-- Returns timings and receipt, as the end of a Result, of an entry that ends without its host. It may have been started
-- at `started_at`. An entry that waited has had no slot, or others of its session were first.
local function receipt_of(accepted_at, started_at, asked)
  local at = tonumber(started_at) or now_ms()
  local waited = math.max(0, at - accepted_at)
  local for_person = math.min(waited, asked_ms(asked, at))
  local left = waited - for_person
  local host, running, held, owned_at = unpack(redis.call('HMGET', state, 'host', 'running', 'held', 'ownedAt'))
  local waits = {}
  local function add(cause, ms)
    if ms > 0 then waits[#waits + 1] = string.format('["%s",%.0f]', cause, ms) end
  end
  if not started_at then
    local for_slot = host and math.min(left, math.max(0, (tonumber(owned_at) or 0) - accepted_at)) or left
    add('slot', for_slot)
    if running or (held and redis.call('LINDEX', queue, 0) == held) then add('earlier', left - for_slot) end
  end
  add('approval', for_person)
  return string.format(',"timings":{"queuedMs":%.0f,"startMs":0,"runMs":0,"totalMs":%.0f},"receipt":{"acceptedAt":%s%s%s}}', waited, waited,
    accepted_at, started_at and '' or ',"unstarted":true', waits[1] and ',"waits":[' .. table.concat(waits, ',') .. ']' or '')
end

-- Returns the receipt, as the end of a Result, of an entry that waited for its second attempt.
local function receipt_after_first(first_fields, asked)
  local receipt = cjson.decode(first_fields).receipt
  if type(receipt) ~= 'table' then return '}' end
  receipt.askedMs = asked_ms(asked, now_ms())
  return ',"receipt":' .. cjson.encode(receipt) .. '}'
end

-- Ends an entry without more output. The later of two equal names in the JSON of a Result counts.
local function complete(id, outcome, result, retention_ms)
  local record = record_key(id)
  local inbox, started_at, stdout, stderr, seq, key, entry_state, first_end, first_fields, accepted_at, asked = unpack(redis.call('HMGET', record,
    'inbox', 'startedAt', 'stdout', 'stderr', 'seq', 'key', 'state', 'firstEnd', 'firstFields', 'acceptedAt', 'asked'))
  if entry_state == 'waiting' and first_end then
    outcome, result = after_first(outcome, result, first_end, first_fields)
    result = string.sub(result, 1, -2) .. receipt_after_first(first_fields, asked)
  elseif accepted_at then
    result = string.sub(result, 1, -2) .. receipt_of(accepted_at, started_at, asked)
  end
  redis.call('DEL', record, payload_key(id), input_key(id))
  return write_end(record, id, outcome, result, retention_ms, stdout, stderr, seq, key,
    {'inbox', inbox or '', 'startedAt', started_at or ''})
end

-- Ends an entry that the caller has removed from the queue. Adds its inbox, id and event to `ended`.
local function complete_into(id, outcome, result, retention_ms, ended)
  ended[#ended + 1] = redis.call('HGET', record_key(id), 'inbox') or ''
  ended[#ended + 1] = id
  ended[#ended + 1] = complete(id, outcome, result, retention_ms)
end

-- Ends up to `most` waiting entries as cancellations.
local function cancel_waiting(most, result, retention_ms, ended)
  for _ = 1, most do
    local id = redis.call('LPOP', queue)
    if not id then break end
    complete_into(id, 'cancellation', result, retention_ms, ended)
  end
  redis.call('HDEL', state, 'held')
  count_waiting(tenant_quotas())
end

-- Releases the ownership. Later writes under its fence are fenced off, also those of `adopt`.
local function end_ownership()
  local fence = redis.call('HGET', state, 'fence')
  if fence then redis.call('HSET', state, 'released', fence) end
  redis.call('HDEL', state, 'host', 'shell')
end

-- `discard` of the state is a shorter retention, if nobody will read about the generation.
local function end_generation(data, retention_ms)
  local at = time_of(emit('session.closed', '', data))
  local keep_ms = redis.call('HGET', state, 'discard') or retention_ms
  redis.call('HSET', state, 'phase', 'closed', 'closedAt', at, 'closedWith', data)
  redis.call('PEXPIRE', state, keep_ms)
  redis.call('PEXPIRE', spec_key, keep_ms)
  redis.call('PEXPIRE', stream, keep_ms)
end

-- Returns the head if it can be started or checked for admission, else false. `held` is the last held entry, which may
-- have ended. `isRunnable` in read/session-state.ts does the same for readers.
local function runnable(held)
  local head = redis.call('LINDEX', queue, 0)
  return head and head ~= held and head
end

-- Returns a running entry as `{code, id, payload, fields}`, which toTaken() in entry.ts parses.
-- Codes: 1 started by this call · 2 running · 3 overdue, not started · 4 needs admission, not started.
-- The payload has its own key, because Redis keeps only hashes with short values compact.
local function running_entry(id)
  return {2, id, redis.call('GET', payload_key(id)), redis.call('HMGET', record_key(id), 'kind', 'inbox', 'acceptedAt', 'retry', 'starts', 'first',
    'asked', 'firstAt', 'startedAt', 'fence', 'host', 'stdout', 'stderr', 'seq', 'cancel')}
end

-- MAILBOX-4: starts an entry that the caller has removed from the queue, while nothing else runs. The caller writes
-- `running`, and `activeAt` with the returned time, into the state. A second attempt begins without output. `fields`
-- are the fields of a reply up to `asked`. This adds the fields of the start.
local function start(id, fields, fence, host)
  local again = ''
  if fields[6] then
    fields[5] = (tonumber(fields[5]) or 1) + 1
    again = ',"again":true,"attempt":' .. fields[5]
    fields[8] = redis.call('HGET', record_key(id), 'startedAt')
    redis.call('HSET', record_key(id), 'starts', fields[5], 'firstAt', fields[8] or '', 'stdout', 0, 'stderr', 0, 'seq', 0)
  end
  local at = time_of(emit('command.started', id, '{"hostId":"' .. host .. '"' .. again .. '}'))
  redis.call('HSET', record_key(id), 'state', 'running', 'fence', fence, 'host', host, 'startedAt', at)
  fields[9], fields[10], fields[11] = at, fence, host
  return at
end

-- Returns true if a process claims the id of a host, listens to the host's wake-ups and has a recent heartbeat, and if
-- this user of Redis may check that.
local function is_listening(host, boot, wake_ups, heartbeats, least_ms)
  local left = redis.pcall('PTTL', heartbeats .. host .. ':alive')
  if type(left) ~= 'number' or left < least_ms then return false end
  local claim = redis.pcall('GET', heartbeats .. host .. ':boot')
  if type(claim) ~= 'string' or string.match(claim, '%S+$') ~= boot then return false end
  local listeners = redis.pcall('PUBSUB', 'NUMSUB', wake_ups .. host)
  return not listeners.err and listeners[2] > 0
end

-- Starts the head. `admission` is the digest of the host's rules, or '' when it admits everything, and `counted` the
-- field of the state. Returns a reply with the code 1, 3 or 4, or {0, phase} when nothing can be started; and for a
-- start the id and the time, which the caller writes into `running` and `activeAt` of the state.
local function start_next(fence, host, phase, held, admission, counted)
  if phase ~= 'open' then return {0, phase or ''} end
  local takes_any = admission == '' and not held
  local id
  if takes_any then id = redis.call('LPOP', queue) else id = runnable(held) end
  if not id then return {0, phase} end
  local payload = redis.call('GET', payload_key(id))
  local fields = redis.call('HMGET', record_key(id), 'kind', 'inbox', 'acceptedAt', 'retry', 'starts', 'first', 'asked', 'deadline',
    'cleared')
  local deadline, cleared = fields[8], fields[9]
  fields[8], fields[9] = false, false
  local code = admission ~= '' and cleared ~= admission and 4
  if deadline then
    local time = redis.call('TIME')
    if tonumber(deadline) < time[1] * 1000 + math.floor(time[2] / 1000) then code = 3 end
  end
  if code then
    if takes_any then redis.call('LPUSH', queue, id) end
    return {code, id, payload, fields}
  end
  if not takes_any then redis.call('LPOP', queue) end
  if counted then count_waiting(tenant_quotas()) end
  local at = start(id, fields, fence, host)
  return {1, id, payload, fields}, id, at
end

-- Checks output chunks from ARGV[first] on, in groups of five: stream (1, 2) · seq · raw from · raw to · chunk. Each
-- must begin at its stream's offset and have the next seq, but may cover no raw bytes. All numbers are compared as
-- texts. Returns whether all chunks follow, both offsets and the seq.
local function follows(first, stdout, stderr, seq)
  local after = {['1'] = stdout or '0', ['2'] = stderr or '0'}
  local before = {after['1'], after['2']}
  local next_seq = seq or '0'
  for i = first, #ARGV, 5 do
    local s = ARGV[i]
    if ARGV[i + 1] ~= next_seq or ARGV[i + 2] ~= after[s] then return false, before, next_seq end
    after[s] = ARGV[i + 3]
    next_seq = string.format('%d', next_seq + 1)
  end
  return true, {after['1'], after['2']}, next_seq
end

local function emit_output(id, first)
  for i = first, #ARGV, 5 do emit('command.output', id, ARGV[i + 4]) end
end

