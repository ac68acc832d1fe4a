-- finish: make the running entry (or an unstarted head) terminal, once, and take the next.
-- ARGV 3 fence · 4 host · 5 entry · 6 outcome · 7 result JSON · 8 epoch that the result says · 9 take the next ('1' or '0') · 10 retention ms
--      11 sealed answer of a file operation, or '' · 12 how long the inbox may get · 13 '1': the result rides in the notice
--      14… the last output entries (see read_output)
-- KEYS 4 the inbox of who submitted it, when that is to be told here
-- Returns {event, {take…}, 1 it had ended before · 0 this call ended it} · {-1} fenced · {-2} neither running nor head · {-3} no record
--         {-4} cancelled meanwhile: finish it as a cancellation · {-5, stdout, stderr} output not at the stored offset
local fence, host, id, outcome = ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local owner = read_as_owner(fence, host)
if not owner then return {-1} end
local known = redis.call('HMGET', record_key(id), 'state', 'event', 'cancel', 'stdout', 'stderr', 'seq')
if not known[1] then return {-3} end
local event, before = known[2], 1
local fields, ran = {}, false
if known[1] ~= 'ended' then
  ran = owner.run == id
  if not ran and (owner.run or redis.call('LINDEX', queue, 0) ~= id) then return {-2} end
  -- cancel() has promised its caller a cancellation.
  if known[3] and outcome ~= 'cancellation' then return {-4} end
  local output, offsets = read_output({known[4], known[5], known[6]}, 14)
  if not output then return {-5, offsets[1], offsets[2]} end
  -- Its first write gives back the payload's memory, so a full Redis lets the rest through.
  event, before = complete(id, outcome, ARGV[7], ARGV[10], output), 0
  if ARGV[11] ~= '' then redis.call('SET', answer_key(id), ARGV[11], 'PX', 3600000) end
  if ran then owner.run = false else redis.call('LPOP', queue) end
  if KEYS[4] then
    local tenant, session = string.match(prefix, '{([^:]*):([^}]*)}')
    -- Only a hint: an inbox that is none keeps nothing from ending.
    redis.pcall('XADD', KEYS[4], 'NOMKSTREAM', 'MAXLEN', '~', ARGV[12], '*', 't', tenant, 's', session, 'e', id, 'v', event,
      'r', ARGV[13] == '1' and ARGV[7] or '')
  end
  fields = {'active', now_ms(), 'epoch', ARGV[8], 'said', ARGV[8]}
end
local reply = {0}
if ARGV[9] == '1' then reply = take_head(fence, host, owner) end
if reply[1] == 1 then
  fields[#fields + 1] = 'run'
  fields[#fields + 1] = reply[2]
elseif ran then
  redis.call('HDEL', state, 'run')
end
if #fields > 0 then redis.call('HSET', state, unpack(fields)) end
ring()
return {event, reply, before}
