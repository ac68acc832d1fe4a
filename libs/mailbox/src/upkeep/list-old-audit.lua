-- list-old-audit: list the oldest entries of the audit in Redis.
-- KEYS 1 records · 2 heads · 3 removed
-- ARGV 1 the most to list
-- Returns {bytes of all records, mark of the stream or '', then of each entry: id, chain, first number, records, the
--      chain's mark or ''}
local bytes, stream = unpack(redis.call('HMGET', KEYS[3], 'bytes', 'stream'))
local listed = {bytes or '0', stream or ''}
for _, entry in ipairs(redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', ARGV[1])) do
  local fields = {}
  for i = 1, #entry[2], 2 do fields[entry[2][i]] = entry[2][i + 1] end
  local mark = redis.call('HGET', KEYS[3], fields.c or '') or ''
  for _, value in ipairs({entry[1], fields.c or '', fields.f or '', fields.d or '', mark}) do listed[#listed + 1] = value end
end
return listed
