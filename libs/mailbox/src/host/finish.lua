-- finish: make the running entry (or an unstarted head) terminal, once, and take the next.
-- ARGV 3 fence · 4 host · 5 entry · 6 outcome · 7 result JSON · 8 epoch that the result says · 9 take the next ('1' or '0') · 10 retention ms
--      11 sealed answer of a file operation, or '' · 12 how long the inbox may get · 13 '1': the result rides in the notice
--      14… the last output entries (see follows)
-- KEYS 4 the inbox of who submitted it, when that is to be told here
-- Returns {event, {take…}, 1 it had ended before · 0 this call ended it} · {-1} fenced · {-2} neither running nor head · {-3} no record
--         {-4} cancelled meanwhile: finish it as a cancellation · {-5, stdout, stderr} output not at the stored offset
local fence, host, id, outcome = ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local known = redis.call('HMGET', state, 'fence', 'host', 'run', 'life')
if known[1] ~= fence or known[2] ~= host then return {-1} end
local run = known[3]
local entry = redis.call('HMGET', record_key(id), 'state', 'event', 'cancel', 'stdout', 'stderr', 'seq', 'kind', 'inbox', 'at', 'started')
if not entry[1] then return {-3} end
local event, before = entry[2], 1
local changes = {}
if entry[1] ~= 'ended' then
  if run ~= id and (run or redis.call('LINDEX', queue, 0) ~= id) then return {-2} end
  -- cancel() has promised its caller a cancellation.
  if entry[3] and outcome ~= 'cancellation' then return {-4} end
  local follow, offsets, seq = follows(14, entry[4], entry[5], entry[6])
  if not follow then return {-5, offsets[1], offsets[2]} end
  redis.call('DEL', record_key(id), input_key(id))
  emit_output(id, 14)
  event = complete(id, outcome, ARGV[7], ARGV[10], {entry[7], entry[8], entry[9], entry[10], offsets[1], offsets[2], entry[3], seq})
  before = 0
  if ARGV[11] ~= '' then redis.call('SET', answer_key(id), ARGV[11], 'PX', 3600000) end
  if KEYS[4] then
    local tenant, session = string.match(prefix, '{([^:]*):([^}]*)}')
    -- Only a hint: an inbox that is none keeps nothing from ending.
    redis.pcall('XADD', KEYS[4], 'NOMKSTREAM', 'MAXLEN', '~', ARGV[12], '*', 't', tenant, 's', session, 'e', id, 'v', event,
      'r', ARGV[13] == '1' and ARGV[7] or '')
  end
  if run ~= id then redis.call('LPOP', queue) end
  run = false
  changes = {'epoch', ARGV[8], 'said', ARGV[8], 'active', time_of(event)}
end
local reply = {0}
if ARGV[9] == '1' then
  reply = run and to_reply(2, run, read_entry(run)) or start_next(fence, host, known[4], changes)
end
if #changes > 0 then redis.call('HSET', state, unpack(changes)) end
if before == 0 and reply[1] ~= 1 then redis.call('HDEL', state, 'run') end
publish_newest()
return {event, reply, before}
