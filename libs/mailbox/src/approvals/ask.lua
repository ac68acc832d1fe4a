-- ask: add an asker to a question about the head of a mailbox. Equal questions are one question. The caller holds the
-- head.
-- ARGV 2 id for a new question, which begins with the keyed hash of its content · 3 asker · 4 binding ·
--      5 ms until it expires · 6 most pending askers · 7 question, sealed ·
--      8 '1': the caller has found no earlier answer that it can use
-- Returns {1, id, ms when it expires} pending (again, when it arrives twice) · {2} already answered ·
--         {-1, pending} too many are pending · {-2, ms} the session may not ask until then, after too many denials
local id, asker, binding = ARGV[2], ARGV[3], ARGV[4]
local known, bound = split(redis.call('HGET', asked, asker))
if known and bound == binding then return {1, known, redis.call('ZSCORE', pending, asker)} end
local answered, answered_as = split(redis.call('GET', answered_key(asker)))
if ARGV[8] ~= '1' and answered and answered_as == binding then
  if answered == 'expired' then return {2} end
  local ended = redis.call('GET', end_key(answered))
  if ended and not string.find(ended, '"state":"revoked"', 1, true) then return {2} end
end
-- The asker may have asked before, for another shell or under other rules. It leaves that question.
if known then leave(asker) end
local at = now_ms()
local denials = redis.call('GET', denials_key(string.match(asker, '^%S+')))
local quiet_until = tonumber(string.match(denials or '', ' (%d+)$') or 0)
if quiet_until > at then return {-2, text_of(quiet_until)} end
local count = redis.call('ZCARD', pending)
if count >= tonumber(ARGV[6]) then return {-1, count} end
local live = string.match(redis.call('HGET', questions, hash_of(id)) or '', '^%S+')
if live then
  id = live
else
  redis.call('HSET', questions, hash_of(id), id .. ' ' .. ARGV[7])
  redis.call('ZADD', unannounced, text_of(at), id)
end
local expires = text_of(at + ARGV[5])
redis.call('HSET', asked, asker, id .. ' ' .. binding)
redis.call('ZADD', askers_key(id), text_of(at), asker)
redis.call('ZADD', pending, expires, asker)
publish(id)
return {1, id, expires}
