-- ask: add a question of the head of a mailbox, which is held in the next step. Entries that ask the same share one question.
-- ARGV 2 keyed hash of what is asked · 3 id that the question gets if nobody asks it yet · 4 `<session> <generation> <entry>` · 5 binding
--      6 ms after which it expires · 7 the most questions that may be pending · 8 the question, sealed
--      9 '1': what was answered before is known, and answers nothing
-- Returns {1, id, ms when it expires} it is pending (again, when it arrives twice) · {2} it was answered meanwhile
--         {-1, pending} too many are pending · {-2, ms} its session was denied so often that it is not asked until then
local hash, id, asker, binding = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local known, bound = split(redis.call('HGET', asked, asker))
if known and bound == binding then return {1, known, redis.call('ZSCORE', pending, asker)} end
local answered, answered_as = split(redis.call('GET', answered_key(asker)))
if ARGV[9] ~= '1' and answered and answered_as == binding then
  if answered == 'expired' then return {2} end
  local ended = redis.call('GET', end_key(answered))
  if ended and not string.find(ended, '"state":"revoked"', 1, true) then return {2} end
end
-- It was asked for another shell, or under other rules.
if known then leave(asker) end
local at = now_ms()
local quiet_until = tonumber(string.match(redis.call('GET', denials_key(string.match(asker, '^%S+'))) or '', ' (%d+)$') or 0)
if quiet_until > at then return {-2, text_of(quiet_until)} end
local count = redis.call('ZCARD', pending)
if count >= tonumber(ARGV[7]) then return {-1, count} end
local live = redis.call('HGET', rounds, hash)
if live then
  id = live
else
  redis.call('HSET', questions, id, ARGV[8])
  redis.call('HSET', rounds, hash, id)
  redis.call('ZADD', unannounced, text_of(at), id)
end
local expires = text_of(at + ARGV[6])
redis.call('HSET', asked, asker, id .. ' ' .. binding)
redis.call('ZADD', askers_key(id), text_of(at), asker)
redis.call('ZADD', pending, expires, asker)
publish(id)
return {1, id, expires}
