-- late: add to the stream what an entry that has ended left running, behind its terminal event, at the stored raw offset and seq only.
-- ARGV 3 fence · 4 host · 5 entry · 6 '1': a rule withholds what follows · 7… output entries (see follows); with none it only asks where they go on
-- Returns {1, stdout, stderr, seq, carried, outcome} stored · {0, …} not at the stored offset (a call that arrived twice) · {-1} fenced
--         {-2} it has not ended · {-3} no record: its time is over, or it was no entry of the mailbox's
-- `carried`: bytes that the stream was given of the entry, its raw output and what came late. `outcome`: 'blocked' from then on
if not owns(ARGV[3], ARGV[4]) then return {-1} end
local id = ARGV[5]
local record = record_key(id)
local entry = redis.call('HMGET', record, 'state', 'outcome', 'stdout', 'stderr', 'seq', 'late', 'withheld')
if not entry[1] then return {-3} end
if entry[1] ~= 'ended' then return {-2} end
local stdout, stderr, seq, bytes = string.match(entry[6] or '', '^%S+ (%d+) (%d+) (%d+) (%d+)$')
local own = tonumber(entry[3] or 0) + tonumber(entry[4] or 0)
local follow, offsets, next_seq = follows(7, stdout or entry[3], stderr or entry[4], seq or entry[5])
local carried = tonumber(bytes or 0)
if follow and #ARGV > 6 then
  emit_output(id, 7)
  for i = 7, #ARGV, 5 do carried = carried + #ARGV[i + 4] end
  -- Its own offsets stay what they were at its end: readers compare them with what they have seen of it until then.
  redis.call('HSET', record, 'late', string.format('%s %.0f %.0f %.0f %.0f', newest, offsets[1], offsets[2], next_seq, carried))
  if ARGV[6] == '1' then redis.call('HSET', record, 'withheld', 1) end
  publish_newest()
end
return {follow and 1 or 0, offsets[1], offsets[2], next_seq, own + carried, (entry[7] or ARGV[6] == '1') and 'blocked' or entry[2] or ''}
