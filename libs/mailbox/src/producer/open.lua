-- open: record a session, or attach to the open generation. Without any submit it expires a retention after the last
-- call.
-- ARGV 3 sealed spec · 4 digest of the spec, or '' · 5 '1' to attach regardless of the spec · 6 retention ms ·
--      7 placement class, plain · 8 placement JSON, plain ·
--      9 generation of the sealed spec, or '' to ask for the next one ·
--      10 ms without renewal after which a driver counts as gone, or '' when the caller is no driver. A driver begins
--      a driven generation
-- Returns {1, generation} created · {2, generation, 1 driven · 0} attached ·
--         {-1, sealed spec, generation} another spec · {0} closing: try again ·
--         {3, generation} nothing was recorded: call again with the spec sealed for this generation
local phase, generation, digest, unused, driven =
  unpack(redis.call('HMGET', state, 'phase', 'generation', 'digest', 'unused', 'driven'))
if phase == 'closing' then return {0} end
if phase == 'open' then
  if ARGV[5] ~= '1' and ARGV[4] ~= digest then return {-1, redis.call('GET', spec_key), generation} end
  if unused then
    redis.call('PEXPIRE', state, ARGV[6])
    redis.call('PEXPIRE', spec_key, ARGV[6])
  end
  if driven and ARGV[10] ~= '' then redis.call('SET', driver_key, 1, 'PX', ARGV[10]) end
  return {2, generation, driven and 1 or 0}
end
local at = now_ms()
local last = tonumber(generation or 0)
-- Another call may have recorded and closed a generation since the caller asked.
if ARGV[9] == '' or tonumber(ARGV[9]) <= last then return {3, string.format('%.0f', math.max(at, last + 1))} end
generation = ARGV[9]
redis.call('HDEL', state, 'epoch', 'reported', 'epochBase', 'announced', 'held', 'loss', 'driven', 'closedAt', 'closedWith', 'image',
  'imageDigest', 'start', 'node', 'discard')
redis.call('HSET', state, 'phase', 'open', 'generation', generation, 'digest', ARGV[4], 'createdAt', at, 'activeAt', at,
  'status', 'queued', 'unused', 1, 'class', ARGV[7], 'placement', ARGV[8])
if ARGV[10] ~= '' then
  redis.call('HSET', state, 'driven', 1)
  redis.call('SET', driver_key, 1, 'PX', ARGV[10])
end
redis.call('PEXPIRE', state, ARGV[6])
redis.call('SET', spec_key, ARGV[3], 'PX', ARGV[6])
return {1, generation}
