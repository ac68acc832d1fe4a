-- finish: end the running entry (or the unstarted head), once, and start the next.
-- ARGV 3 fence · 4 host · 5 entry · 6 outcome · 7 result JSON · 8 epoch that the result reports ·
--      9 boot of the owner (or '-') to start the next entry, else '' · 10 retention ms ·
--      11 sealed answer of a file operation, or '' · 12 channel of the submitter's inbox to notify, or '' ·
--      13 most bytes of a result in the notice · 14 digest of the host's admission rules, or '' for none ·
--      15 reason of the result's cancellation, or '' · 16 `<tenant>:<session>` · 17… last output chunks (see follows)
-- Returns {event, {take…}, 0 ended by this call · 1 ended before} · {-1} fenced · {-2} neither running nor head ·
--         {-3} no record, and not running · {-4, reason} finish it as a cancellation with this reason ·
--         {-5, stdout, stderr} output not at the stored offset
local fence, host, id, outcome, result = ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local owner_fence, owner_host, running, phase, held, counted =
  unpack(redis.call('HMGET', state, 'fence', 'host', 'running', 'phase', 'held', 'counted'))
if owner_fence ~= fence or owner_host ~= host then return {-1} end
local record = prefix .. 'record:' .. id
local entry_state, event, cancel, stdout, stderr, seq, started_at, key, input =
  unpack(redis.call('HMGET', record, 'state', 'event', 'cancel', 'stdout', 'stderr', 'seq', 'startedAt', 'key', 'input'))
-- A running entry without a record has not ended, since one script does both. Without an end it would run for ever.
if not entry_state and running ~= id then return {-3} end
local ends_now = entry_state ~= 'ended'
if ends_now then
  if running ~= id and (running or redis.call('LINDEX', queue, 0) ~= id) then return {-2} end
  -- cancel() has promised its caller a cancellation.
  if cancel and (outcome ~= 'cancellation' or ARGV[15] ~= cancel) then return {-4, cancel} end
  if ARGV[17] then
    local follow, offsets
    follow, offsets, seq = follows(17, stdout, stderr, seq)
    stdout, stderr = offsets[1], offsets[2]
    if not follow then return {-5, stdout, stderr} end
  end
  redis.call('DEL', record, payload_key(id))
  if input then redis.call('DEL', prefix .. 'input:' .. id) end
  for i = 17, #ARGV, 5 do emit('command.output', id, ARGV[i + 4]) end
  event = write_end(record, id, outcome, result, ARGV[10], stdout, stderr, seq, key, {'startedAt', started_at or ''})
  if ARGV[11] ~= '' then redis.call('SET', prefix .. 'reply:' .. id, ARGV[11], 'PX', math.min(3600000, ARGV[10])) end
  -- The script must not fail when this user of Redis may not publish the notice, which is only a hint.
  if ARGV[12] ~= '' then
    redis.pcall('PUBLISH', ARGV[12],
      'e ' .. ARGV[16] .. ' ' .. id .. ' ' .. event .. ' ' .. (#result <= tonumber(ARGV[13]) and result or ''))
  end
  if running ~= id then
    redis.call('LPOP', queue)
    count_waiting(tenant_quotas())
    if held == id then
      redis.call('HDEL', state, 'held')
      held = false
    end
  end
  running = false
end
-- If an earlier arrival of this call started the next entry and its reply was lost, return that entry, even without
-- ARGV 9.
local next_entry, started, at = {0}, nil, nil
if running then
  next_entry = running_entry(running)
elseif ARGV[9] ~= '' then
  next_entry, started, at = start_next(fence, host, phase, held, ARGV[14], counted)
end
local reported = ARGV[8]
if ends_now and started then
  redis.call('HSET', state, 'epoch', reported, 'reported', reported, 'running', started, 'activeAt', at)
elseif ends_now then
  -- MAILBOX-6: under these conditions start_next would have started any waiting entry, so none waits.
  local delegated = ARGV[9] ~= '' and ARGV[14] == '' and phase == 'open' and not held and next_entry[1] == 0
  redis.call('HSET', state, 'epoch', reported, 'reported', reported, 'activeAt', time_of(event), 'delegated', delegated and fence .. ' ' .. ARGV[9] or '')
  redis.call('HDEL', state, 'running')
elseif started then
  redis.call('HSET', state, 'running', started, 'activeAt', at)
end
if newest then redis.call('PUBLISH', feed, newest) end
return {event, next_entry, ends_now and 0 or 1}
