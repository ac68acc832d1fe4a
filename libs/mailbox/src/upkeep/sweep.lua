-- sweep: end waiting entries whose time has passed, finish a close that was left half done, and trim the stream by age and by bytes.
-- ARGV 3 retention ms · 4 most bytes of the stream · 5 result JSON of an entry that was never started in time
--      6 result JSON of an entry of a life that ended · 7 the most entries that one call looks at
-- Returns {trimmed entries, waiting, host or '', {inbox, entry, event, …}, 1 something is unfinished · 0}
write_when_full()
local at = now_ms()
local retention, most = tonumber(ARGV[3]), tonumber(ARGV[7])
local known = redis.call('HMGET', state, 'life', 'run', 'host', 'looked', 'marks', 'dropped')
local life, run, host = known[1], known[2], known[3]
local ended = {}

-- A long queue is looked at in parts, one a sweep.
local function end_overdue()
  local from = tonumber(known[4] or 0)
  local ids = redis.call('LRANGE', queue, from, from + most - 1)
  local removed = 0
  for _, id in ipairs(ids) do
    local entry = redis.call('HMGET', record_key(id), 'deadline', 'inbox')
    if entry[1] and tonumber(entry[1]) < at then
      redis.call('LREM', queue, 1, id)
      removed = removed + 1
      ended[#ended + 1] = entry[2] or ''
      ended[#ended + 1] = id
      ended[#ended + 1] = complete(id, 'timeout', ARGV[5], ARGV[3])
    end
  end
  if #ids == most then
    redis.call('HSET', state, 'looked', from + most - removed)
  elseif from > 0 then
    redis.call('HDEL', state, 'looked')
  end
end

if life == 'closing' then
  cancel_waiting(most, ARGV[6], ARGV[3], ended)
  if not host and not run and redis.call('LLEN', queue) == 0 then
    life = 'closed'
    end_life('{}', ARGV[3])
  end
elseif life then
  end_overdue()
end

-- Everything that an unfinished entry has in the stream stands at or after the time at which the first of them was accepted.
local first = run or redis.call('LINDEX', queue, 0)
local now = string.format('%.0f', at)
local oldest = first and redis.call('HGET', record_key(first), 'at') or now

-- By age: a mark says what was finished when it was made. Once it is as old as the retention, all that may go. Four marks a retention.
local function trim_by_age()
  local cut, kept, last = nil, {}, nil
  for time, id in string.gmatch((known[5] or '') .. ' ', '(%d+):(%d+) ') do
    kept[#kept + 1] = {time, id}
    last = tonumber(time)
  end
  if redis.call('XLEN', stream) > 0 and (not last or last <= at - retention / 4) then kept[#kept + 1] = {now, oldest} end
  local marks = {}
  for _, mark in ipairs(kept) do
    if tonumber(mark[1]) <= at - retention then cut = mark[2] else marks[#marks + 1] = mark[1] .. ':' .. mark[2] end
  end
  local text = table.concat(marks, ' ')
  if text == '' then redis.call('HDEL', state, 'marks') elseif text ~= known[5] then redis.call('HSET', state, 'marks', text) end
  return cut and redis.call('XTRIM', stream, 'MINID', cut) or 0
end

-- By bytes: entries of finished commands, oldest first, from where the last sweep stopped to where the running one began.
local upto = run and string.format('%.0f', tonumber(redis.call('HGET', record_key(run), 'started') or at) - 1) or '+'
local from, wrapped = known[6] or '-', not known[6]
local seen, finished = 0, {}
local function drop_finished(excess)
  local freed, dropped = 0, 0
  while freed < excess and freed < 16777216 and seen < 2 * most do
    local entry = redis.call('XRANGE', stream, from, upto, 'COUNT', 1)[1]
    if entry then
      local id = entry[2][4]
      if id ~= '' and finished[id] == nil then
        local known_state = redis.call('HGET', record_key(id), 'state')
        finished[id] = known_state ~= 'waiting' and known_state ~= 'running'
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

local trimmed = 0
if life then
  trimmed = trim_by_age()
  local limit = tonumber(ARGV[4])
  local size = redis.call('MEMORY', 'USAGE', stream, 'SAMPLES', 0) or 0
  if size > limit then
    local excess = math.ceil(redis.call('XLEN', stream) * (size - limit) / size)
    -- Too many to be looked at one by one: most of their share goes at once.
    if excess > 2 * most then
      trimmed = trimmed + redis.call('XTRIM', stream, 'MINID', '~', oldest, 'LIMIT', excess - 2 * most)
      size = redis.call('MEMORY', 'USAGE', stream, 'SAMPLES', 0) or 0
    end
    -- What an entry takes in memory is known only when it is gone, so this comes near the limit in steps.
    for _ = 1, 5 do
      if size <= limit then break end
      trimmed = trimmed + drop_finished(math.max((size - limit) * 0.7, 1))
      size = redis.call('MEMORY', 'USAGE', stream, 'SAMPLES', 0) or 0
    end
    if from == '-' then redis.call('HDEL', state, 'dropped') else redis.call('HSET', state, 'dropped', from) end
  end
end
publish_newest()
local waiting = redis.call('LLEN', queue)
return {trimmed, waiting, host or '', ended, (run or waiting > 0 or life == 'closing') and 1 or 0}
