-- call-host: add a call to a stream of calls to a host, and wake the host. A full Redis accepts this, because the
-- script first trims the stream.
-- KEYS 1 calls to the host
-- ARGV 1 call, JSON · 2 approximate number of calls to keep · 3 channel of the host's wake-ups · 4 wake-up ·
--      5 the host's list of callers, or '' for a call of an operator · 6 tenant that calls · 7 ms after which the
--      stream expires
-- Returns 1
redis.call('XTRIM', KEYS[1], 'MAXLEN', '~', ARGV[2])
redis.call('XADD', KEYS[1], '*', 'd', ARGV[1])
if ARGV[5] ~= '' then
  redis.call('PEXPIRE', KEYS[1], ARGV[7])
  redis.call('LPUSH', ARGV[5], ARGV[6])
end
redis.call('PUBLISH', ARGV[3], ARGV[4])
return 1
