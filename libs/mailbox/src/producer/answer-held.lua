-- answer-held: release a held entry, which is then decided again, or end it unstarted.
-- ARGV 3 entry · 4 'release', or its outcome · 5 result JSON of this end, or '' ·
--      6 data of the event approval.answered, JSON, or '' · 7 retention ms · 8 this call's own id ·
--      9 channel prefix of hosts' wake-ups · 10 wake-up ·
--      11 result JSON with which entries behind it are cancelled, or '' · 12 most entries that one call cancels
-- Returns {1, event or '', inbox, needs, cancelled, first}: answered. `needs` is 1 if the session needs a job, else 0.
--         `cancelled` lists {inbox, entry, event, …} of the entries behind it that this call cancelled. `first` is 1 if
--         the entry has a first attempt, as which it ended if it was not released, else 0. A repeated call (the same
--         id, ARGV 8) gets this reply with an empty `cancelled`. ·
--         {2, cancelled} still held: call again to cancel more · {0} the entry is not held · {-1} unknown entry
local id, decision = ARGV[3], ARGV[4]
local record = record_key(id)
local entry_state, inbox, event, answer_call, first, asked =
  unpack(redis.call('HMGET', record, 'state', 'inbox', 'event', 'answerCall', 'first', 'asked'))
if not entry_state then return {-1} end
local host, held, running = unpack(redis.call('HMGET', state, 'host', 'held', 'running'))
local repeated = answer_call == ARGV[8]
local behind = {}
if not repeated then
  if held ~= id or redis.call('LINDEX', queue, 0) ~= id then return {0} end
  write_when_full()
  local most = tonumber(ARGV[12])
  if ARGV[11] ~= '' and redis.call('LLEN', queue) - 1 > most then
    -- The entry stays held until all behind it are cancelled, so that none of them starts.
    redis.call('LPOP', queue)
    cancel_waiting(most, ARGV[11], ARGV[7], behind)
    redis.call('LPUSH', queue, id)
    count_waiting(tenant_quotas())
    redis.call('HSET', state, 'held', id)
    publish_newest()
    return {2, behind}
  end
  redis.call('HDEL', state, 'held')
  held = false
  if ARGV[6] ~= '' then emit('approval.answered', id, ARGV[6]) end
  if decision == 'release' then
    redis.call('HSET', record, 'answerCall', ARGV[8], 'asked', string.format('%s %.0f', asked or '', now_ms()))
    redis.call('HDEL', record, 'held')
  else
    redis.call('LPOP', queue)
    count_waiting(tenant_quotas())
    event = complete(id, decision, ARGV[5], ARGV[7])
    redis.call('HSET', record, 'answerCall', ARGV[8])
    if ARGV[11] ~= '' then cancel_waiting(most, ARGV[11], ARGV[7], behind) end
  end
  publish_newest()
end
local has_work = not running and runnable(held)
if has_work and host then redis.call('PUBLISH', ARGV[9] .. host, ARGV[10]) end
return {1, event or '', inbox or '', has_work and not host and 1 or 0, behind, first and 1 or 0}
