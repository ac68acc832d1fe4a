-- adopt: become the owner under a fence, unless a newer one is known. The same owner's equal fence is accepted, until it was given up.
-- ARGV 3 fence · 4 host · 5 generation for which the job was added, or '' · 6 placement class of the job's queue, or ''
-- Returns {1, life, generation, sealed spec, epoch, waiting, created ms, host before this fence, entry…, epoch that a result last said, epoch before this sandbox, '<host> <sandbox>' of the shell that was last ready or '', epoch of the shell that was last said to be ready} (the entry with code 2, or {0}) · {-1} fenced · {-2} the session is closed · {-3} the job was left from an earlier life in the wrong queue
local known = redis.call('HMGET', state, 'fence', 'life', 'gen', 'spec', 'epoch', 'created', 'host', 'run', 'said', 'base', 'released', 'before', 'shell', 'status', 'announced', 'class')
if known[1] and tonumber(known[1]) > tonumber(ARGV[3]) then return {-1} end
if known[2] ~= 'open' and known[2] ~= 'closing' then return {-2} end
if ARGV[6] ~= '' and ARGV[6] ~= known[16] and ARGV[5] ~= known[3] then return {-3} end
local before = known[12]
if known[1] == ARGV[3] then
  if known[7] ~= ARGV[4] or known[11] == ARGV[3] then return {-1} end
else
  before = known[7] or ''
  write_when_full()
  redis.call('HSET', state, 'fence', ARGV[3], 'host', ARGV[4], 'before', before)
  redis.call('HDEL', state, 'unused')
  redis.call('PERSIST', state)
end
local entry = {0}
if known[8] then entry = to_reply(2, known[8], read_entry(known[8])) end
return {1, known[2], known[3], known[4] or '', known[5] or '0', redis.call('LLEN', queue), known[6] or '0', before or '', entry, known[9] or '0', known[10] or '0', known[13] or '',
  known[14] == 'ready' and string.match(known[15] or '', '^%d+ %d+ (%d+) ') or '0'}
