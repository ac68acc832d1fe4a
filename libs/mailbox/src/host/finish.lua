-- finish: make the running entry (or an unstarted head) terminal, once, and take the next.
-- ARGV 3 fence · 4 host · 5 entry · 6 outcome · 7 result JSON · 8 epoch that the result says · 9 take the next ('1' or '0') · 10 retention ms
--      11 sealed answer of a file operation, or '' · 12… the last output entries (see store)
-- Returns {event, {take…}, 1 it had ended before · 0 this call ended it} · {-1} fenced · {-2} neither running nor head · {-3} no record
--         {-4} cancelled meanwhile: finish it as a cancellation · {-5, stdout, stderr} output not at the stored offset
local fence, host, id, outcome = ARGV[3], ARGV[4], ARGV[5], ARGV[6]
if not owns(fence, host) then return {-1} end
local known = redis.call('HMGET', record_key(id), 'state', 'event', 'cancel')
if not known[1] then return {-3} end
local event, before = known[2], 1
if known[1] ~= 'ended' then
  local running = redis.call('HGET', state, 'run')
  if running ~= id and (running or redis.call('LINDEX', queue, 0) ~= id) then return {-2} end
  -- cancel() has promised its caller a cancellation.
  if known[3] and outcome ~= 'cancellation' then return {-4} end
  write_when_full()
  local stored, offsets = store(id, 12)
  if not stored then return {-5, offsets[1], offsets[2]} end
  event, before = complete(id, outcome, ARGV[7], ARGV[10]), 0
  if ARGV[11] ~= '' then redis.call('SET', answer_key(id), ARGV[11], 'PX', 3600000) end
  if running == id then redis.call('HDEL', state, 'run') else redis.call('LPOP', queue) end
  redis.call('HSET', state, 'epoch', ARGV[8], 'said', ARGV[8])
end
local reply = {0}
if ARGV[9] == '1' then reply = take_head(fence, host) end
ring()
return {event, reply, before}
