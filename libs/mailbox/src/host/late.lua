-- late: add output of processes that an ended entry left running, after its final event, at the stored raw offset and
-- seq only.
-- ARGV 3 fence · 4 host · 5 entry · 6 '1': a rule withholds the output from here on ·
--      7… output chunks (see follows); without any, only reads the position
-- Returns {1, stdout, stderr, seq, carried, outcome} stored ·
--         {0, …} not at the stored offset (a call that arrived twice) · {-1} fenced · {-2} it has not ended ·
--         {-3} no record: it has expired, or was no entry of the mailbox
-- `carried`: bytes of the entry in the stream. `outcome`: 'blocked' once a rule has withheld late output.
if not owns(ARGV[3], ARGV[4]) then return {-1} end
local id = ARGV[5]
local record = record_key(id)
local entry_state, outcome, own_stdout, own_stderr, own_seq, late, withheld =
  unpack(redis.call('HMGET', record, 'state', 'outcome', 'stdout', 'stderr', 'seq', 'late', 'withheld'))
if not entry_state then return {-3} end
if entry_state ~= 'ended' then return {-2} end
local stdout, stderr, seq, bytes = string.match(late or '', '^%S+ (%d+) (%d+) (%d+) (%d+)$')
local own = tonumber(own_stdout or 0) + tonumber(own_stderr or 0)
local follow, offsets, next_seq = follows(7, stdout or own_stdout, stderr or own_stderr, seq or own_seq)
local carried = tonumber(bytes or 0)
if follow and #ARGV > 6 then
  emit_output(id, 7)
  for i = 7, #ARGV, 5 do carried = carried + #ARGV[i + 4] end
  -- The record keeps the offsets of the entry's end, because readers compare these with the bytes that they have.
  redis.call('HSET', record, 'late', string.format('%s %.0f %.0f %.0f %.0f', newest, offsets[1], offsets[2], next_seq, carried))
  if ARGV[6] == '1' then redis.call('HSET', record, 'withheld', 1) end
  publish_output()
end
local is_blocked = withheld or ARGV[6] == '1'
return {follow and 1 or 0, offsets[1], offsets[2], next_seq, own + carried, is_blocked and 'blocked' or outcome or ''}
