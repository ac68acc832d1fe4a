-- Code that the scripts on one detached batch share. Each begins with the parts that it uses (compose-script.ts).
-- KEYS  1 state · 2 tasks · 3 files · 4 results · 5 outputs
--
-- BATCHES-1. Every script is atomic, and safe when it arrives twice.
-- BATCHES-2. One driver has the lease. Its fence rises with each taking, and writes with another fence are refused.
-- BATCHES-3. A result line is stored once, in the order in which its driver gave it.
local state, tasks, files, results, outputs = unpack(KEYS)

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local function text_of(number) return string.format('%.0f', number) end

-- Tells whether ARGV[1] and ARGV[2] are the fence and the host of the driver of this running batch.
local function is_driver()
  local phase, fence, host = unpack(redis.call('HMGET', state, 'state', 'fence', 'host'))
  return phase == 'running' and fence == ARGV[1] and host == ARGV[2]
end

local function expire_all(ms)
  for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ms) end
end

-- A full Redis refuses a script whose first write needs memory. So scripts that a batch needs to end begin with this
-- write.
local function write_when_full() redis.call('HDEL', state, '') end

-- Ends the batch: its files are not needed again, and the rest expires.
local function finish(retention, stopped_by)
  write_when_full()
  redis.call('UNLINK', files)
  redis.call('HSET', state, 'state', 'ended', 'endedAt', text_of(now_ms()), 'stoppedBy', stopped_by)
  expire_all(retention)
end
