-- sweep: end overdue entries, interrupted closes and unused generations, trim the stream, and free its reserved memory.
-- ARGV 3 retention ms · 4 most bytes of the stream · 5 result JSON of an entry that was not started in time ·
--      6 result JSON of an entry of an ended generation · 7 most entries that one call checks ·
--      8 channel prefix of hosts' wake-ups · 9 wake-up · 10 '1' when its owner will not come back
-- Returns {trimmed events, waiting, host or '', {inbox, entry, event, …}, 1 the session has work, for which it needs a
--         job · 0, phase afterwards or ''}
write_when_full()
local at = now_ms()
local retention, most = tonumber(ARGV[3]), tonumber(ARGV[7])
local phase, running, host, held, overdue_from, age_marks, bytes_from, active_at, unused =
  unpack(redis.call('HMGET', state, 'phase', 'running', 'host', 'held', 'overdueFrom', 'ageMarks', 'bytesFrom', 'activeAt', 'unused'))
local ended = {}

-- A long queue is checked in parts, one part per sweep.
local function end_overdue()
  local from = tonumber(overdue_from or 0)
  local ids = redis.call('LRANGE', queue, from, from + most - 1)
  local removed = 0
  for _, id in ipairs(ids) do
    local deadline = redis.call('HGET', record_key(id), 'deadline')
    if deadline and tonumber(deadline) < at then
      redis.call('LREM', queue, 1, id)
      removed = removed + 1
      complete_into(id, 'timeout', ARGV[5], ARGV[3], ended)
      -- The entries behind a held entry can be started now, so the host is notified.
      if id == held and host and not running and runnable(false) then redis.call('PUBLISH', ARGV[8] .. host, ARGV[9]) end
    end
  end
  if #ids == most then
    redis.call('HSET', state, 'overdueFrom', from + most - removed)
  elseif from > 0 then
    redis.call('HDEL', state, 'overdueFrom')
  end
end

if phase == 'closing' then
  cancel_waiting(most, ARGV[6], ARGV[3], ended)
  if not host and not running and redis.call('LLEN', queue) == 0 then
    phase = 'closed'
    end_generation('{}', ARGV[3])
  end
elseif phase then
  end_overdue()
  -- A session without any submit is not closed here, because its state has its own TTL.
  local is_idle = phase == 'open' and not unused and not running and (not host or ARGV[10] == '1') and redis.call('LLEN', queue) == 0
  if is_idle and tonumber(active_at or 0) <= at - retention then
    phase, host = 'closed', false
    end_ownership()
    redis.call('HSET', state, 'status', 'queued')
    end_generation('{"reason":"nobody used it for the retention"}', ARGV[3])
  end
end

-- Events of unfinished entries are never older than the acceptance of the first of these entries.
local first = running or redis.call('LINDEX', queue, 0)
local now = string.format('%.0f', at)
local oldest = first and redis.call('HGET', record_key(first), 'acceptedAt') or now

-- Trims by age. A mark `<time>:<ms>` records that at this time every event before <ms> was of a finished entry. Once it
-- is as old as the retention, those events are trimmed. Four marks are added per retention.
local function trim_by_age()
  local cut, kept, last = nil, {}, nil
  for time, id in string.gmatch((age_marks or '') .. ' ', '(%d+):(%d+) ') do
    kept[#kept + 1] = {time, id}
    last = tonumber(time)
  end
  if redis.call('XLEN', stream) > 0 and (not last or last <= at - retention / 4) then kept[#kept + 1] = {now, oldest} end
  local marks = {}
  for _, mark in ipairs(kept) do
    if tonumber(mark[1]) <= at - retention then cut = mark[2] else marks[#marks + 1] = mark[1] .. ':' .. mark[2] end
  end
  local text = table.concat(marks, ' ')
  if text == '' then redis.call('HDEL', state, 'ageMarks') elseif text ~= age_marks then redis.call('HSET', state, 'ageMarks', text) end
  return cut and redis.call('XTRIM', stream, 'MINID', cut) or 0
end

-- Trims by bytes: events of finished commands, from where the last sweep stopped to the start of the running command.
local upto = running and string.format('%.0f', tonumber(redis.call('HGET', record_key(running), 'startedAt') or at) - 1) or '+'
local from, wrapped = bytes_from or '-', not bytes_from
local seen, finished = 0, {}
local function drop_finished(excess)
  local freed, dropped = 0, 0
  while freed < excess and freed < 16777216 and seen < 2 * most do
    local entry = redis.call('XRANGE', stream, from, upto, 'COUNT', 1)[1]
    if entry then
      local id = entry[2][4]
      if id ~= '' and finished[id] == nil then
        local entry_state = redis.call('HGET', record_key(id), 'state')
        finished[id] = entry_state ~= 'waiting' and entry_state ~= 'running'
      end
      if id ~= '' and finished[id] then
        redis.call('XDEL', stream, entry[1])
        freed = freed + #entry[2][6] + 64
        dropped = dropped + 1
      end
      from = '(' .. entry[1]
      seen = seen + 1
    elseif wrapped then
      from = '-'
      break
    else
      from, wrapped = '-', true
    end
  end
  return dropped
end

local function stream_bytes() return redis.call('MEMORY', 'USAGE', stream, 'SAMPLES', 0) or 0 end

-- Redis reserves 4 KiB for the next events, most of the memory of a session with few commands. A copy has no such
-- reserve. Longer streams are not copied, because a copy of them would take longer and save less.
local function drop_reserve(size)
  if size < 4096 or size > 16384 then return end
  local copy = stream .. ':copy'
  redis.call('COPY', stream, copy, 'REPLACE')
  redis.call('RENAME', copy, stream)
end

-- The counts of a quota that was removed must not count when it is set again.
local quotas, counts, session = tenant_quotas()
if quotas.maxQueued then count_waiting(quotas, counts, session) else redis.pcall('DEL', counts) end

local trimmed = 0
if phase then
  trimmed = trim_by_age()
  local limit = tonumber(ARGV[4])
  local size = stream_bytes()
  if size > limit then
    local excess = math.ceil(redis.call('XLEN', stream) * (size - limit) / size)
    -- There are too many events to check each, so most of the excess is trimmed at once.
    if excess > 2 * most then
      trimmed = trimmed + redis.call('XTRIM', stream, 'MINID', '~', oldest, 'LIMIT', excess - 2 * most)
      size = stream_bytes()
    end
    -- The memory of an event is known only after its deletion, so this approaches the limit in steps.
    for _ = 1, 5 do
      if size <= limit then break end
      trimmed = trimmed + drop_finished(math.max((size - limit) * 0.7, 1))
      size = stream_bytes()
    end
    if from == '-' then redis.call('HDEL', state, 'bytesFrom') else redis.call('HSET', state, 'bytesFrom', from) end
  end
  if not first then drop_reserve(size) end
end
publish_newest()
return {trimmed, redis.call('LLEN', queue), host or '', ended, (running or phase == 'closing' or runnable(held)) and 1 or 0, phase or ''}
