-- finish: end the running entry (or the unstarted head), once, and start the next.
-- ARGV 3 fence · 4 host · 5 entry · 6 outcome · 7 result JSON · 8 epoch that the result reports · 9 start the next ('1' or '0') ·
--      10 retention ms
--      11 sealed answer of a file operation, or '' · 12 channel of the submitter's inbox, when this call is to notify it, or ''
--      13 the most bytes of a result that the notice contains
--      14 digest of the host's admission rules, or '' when it admits everything
--      15 the reason of a cancellation that the result has, or '' · 16 `<tenant>:<session>` · 17… the last output entries (see follows)
-- Returns {event, {take…}, 1 it had ended before · 0 this call ended it} · {-1} fenced · {-2} neither running nor head · {-3} no record
--         {-4, reason} cancelled: finish it as a cancellation with this reason · {-5, stdout, stderr} output not at the stored offset
local fence, host, id, outcome, result = ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local owner_fence, owner_host, running, life, held = unpack(redis.call('HMGET', state, 'fence', 'host', 'running', 'life', 'held'))
if owner_fence ~= fence or owner_host ~= host then return {-1} end
local entry_state, event, cancel, stdout, stderr, stored_seq, kind, inbox, accepted_at, started_at, key =
  unpack(redis.call('HMGET', record_key(id), 'state', 'event', 'cancel', 'stdout', 'stderr', 'seq', 'kind', 'inbox', 'acceptedAt', 'startedAt',
    'key'))
if not entry_state then return {-3} end
local ended_before = 1
local changes = {}
if entry_state ~= 'ended' then
  if running ~= id and (running or redis.call('LINDEX', queue, 0) ~= id) then return {-2} end
  -- cancel() has already promised its caller that the entry ends as a cancellation.
  if cancel and (outcome ~= 'cancellation' or ARGV[15] ~= cancel) then return {-4, cancel} end
  local follow, offsets, seq = follows(17, stdout, stderr, stored_seq)
  if not follow then return {-5, offsets[1], offsets[2]} end
  redis.call('DEL', record_key(id), input_key(id))
  emit_output(id, 17)
  event = complete(id, outcome, result, ARGV[10], {kind = kind, inbox = inbox, accepted_at = accepted_at, started_at = started_at,
    stdout = offsets[1], stderr = offsets[2], cancel = cancel, seq = seq, key = key})
  ended_before = 0
  if ARGV[11] ~= '' then redis.call('SET', answer_key(id), ARGV[11], 'PX', math.min(3600000, ARGV[10])) end
  -- The notice is only a hint, so a user that may not publish it must not make this script fail.
  if ARGV[12] ~= '' then
    redis.pcall('PUBLISH', ARGV[12],
      'e ' .. ARGV[16] .. ' ' .. id .. ' ' .. event .. ' ' .. (#result <= tonumber(ARGV[13]) and result or ''))
  end
  if running ~= id then
    redis.call('LPOP', queue)
    if held == id then
      redis.call('HDEL', state, 'held')
      held = false
    end
  end
  running = false
  changes = {'epoch', ARGV[8], 'reported', ARGV[8], 'activeAt', time_of(event)}
end
local next_entry = {0}
-- An earlier arrival may have started it, whose reply was lost: this one names it, also when it is not to start any.
if running then
  next_entry = to_reply(2, read_entry(running))
elseif ARGV[9] == '1' then
  next_entry = start_next(fence, host, life, held, ARGV[14], changes)
end
if #changes > 0 then redis.call('HSET', state, unpack(changes)) end
if ended_before == 0 and next_entry[1] ~= 1 then redis.call('HDEL', state, 'running') end
publish_newest()
return {event, next_entry, ended_before}
