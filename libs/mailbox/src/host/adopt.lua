-- adopt: become the owner under a fence, unless a newer fence is stored. A host can repeat the call until its release.
-- ARGV 3 fence · 4 host · 5 generation of the job, or '' · 6 placement class of the job's queue, or ''
-- Returns {1, phase, generation, sealed spec, epoch, waiting, created ms, host before this fence, entry with code 2 or
--         {0}, last epoch that a Result reported, epoch before this sandbox, '<host> <sandbox>' of the last ready shell
--         or '', epoch of the last shell that was announced as ready, why the shell before this ownership ended or '',
--         1 driven · 0, '<digest> <name>' of the last container's image or '', ms of this ownership's begin, ms of the
--         last start or end, ms now} · {-1} fenced ·
--         {-2} the session is closed · {-3} the job is a leftover of an earlier generation in another queue
local fence, host = ARGV[3], ARGV[4]
local owner_fence, phase, generation, epoch, created_at, owner_host, running, reported, epoch_base, released, previous_host, shell, status, announced, class, loss, driven, image, image_digest, owned_at, active_at =
  unpack(redis.call('HMGET', state, 'fence', 'phase', 'generation', 'epoch', 'createdAt', 'host', 'running', 'reported', 'epochBase',
    'released', 'previousHost', 'shell', 'status', 'announced', 'class', 'loss', 'driven', 'image', 'imageDigest', 'ownedAt', 'activeAt'))
if owner_fence and tonumber(owner_fence) > tonumber(fence) then return {-1} end
if phase ~= 'open' and phase ~= 'closing' then return {-2} end
local at = string.format('%.0f', now_ms())
if ARGV[6] ~= '' and ARGV[6] ~= class and ARGV[5] ~= generation then return {-3} end
if owner_fence == fence then
  if owner_host ~= host or released == fence then return {-1} end
else
  previous_host, owned_at = owner_host or '', at
  write_when_full()
  redis.call('HSET', state, 'fence', fence, 'host', host, 'previousHost', previous_host, 'ownedAt', owned_at)
  redis.call('HDEL', state, 'unused')
  redis.call('PERSIST', state)
  redis.call('PERSIST', spec_key)
  redis.call('PERSIST', stream)
end
redis.call('HDEL', state, 'delegated')
local entry = {0}
if running then entry = running_entry(running) end
local prepared = status == 'ready' and string.match(announced or '', '^%d+ %d+ (%d+) ')
return {1, phase, generation, redis.call('GET', spec_key) or '', epoch or '0', redis.call('LLEN', queue), created_at or '0', previous_host or '', entry, reported or '0',
  epoch_base or '0', shell or '', prepared or '0', loss or '', driven and 1 or 0, image and image_digest .. ' ' .. image or '', owned_at or at, active_at or '0', at}
