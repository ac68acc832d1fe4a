-- discard: let what a generation left behind expire soon, because its driver has stored the Results elsewhere. What
-- belongs to a generation that is still closing expires when that is closed. An entry that still runs there keeps its
-- record, without which its host could not end it; that expires with the retention after its end.
-- ARGV 3 generation · 4 ms until it expires · 5 number of entries · 6… entries, then hashes of idempotency keys
-- Returns 1 done · 0 it is open, unknown, or not the newest
local phase, generation = unpack(redis.call('HMGET', state, 'phase', 'generation'))
if generation ~= ARGV[3] or phase == 'open' then return 0 end
local function discard_entry(id)
  if redis.call('HGET', record_key(id), 'state') ~= 'ended' then return end
  redis.call('PEXPIRE', record_key(id), ARGV[4])
  redis.call('PEXPIRE', reply_key(id), ARGV[4])
end
local first_key = 6 + tonumber(ARGV[5])
for i = 6, first_key - 1 do discard_entry(ARGV[i]) end
for i = first_key, #ARGV do redis.call('PEXPIRE', idempotency_key(ARGV[i]), ARGV[4]) end
-- The entry that opened a sandbox for files is not among the caller's. It is one of the first of the stream.
for _, event in ipairs(redis.call('XRANGE', stream, '-', '+', 'COUNT', 16)) do
  if event[2][4] ~= '' then discard_entry(event[2][4]) end
end
redis.call('HSET', state, 'discard', ARGV[4])
if phase == 'closed' then
  redis.call('PEXPIRE', state, ARGV[4])
  redis.call('PEXPIRE', spec_key, ARGV[4])
  redis.call('PEXPIRE', stream, ARGV[4])
end
return 1
