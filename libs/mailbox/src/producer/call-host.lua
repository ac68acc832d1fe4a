-- call-host: add a call to the stream of a host, and wake the host. A full Redis accepts this, because the script first
-- trims the stream.
-- KEYS 1 calls of the host
-- ARGV 1 call, JSON · 2 approximate number of calls to keep · 3 channel of the host's wake-ups · 4 wake-up
-- Returns 1
redis.call('XTRIM', KEYS[1], 'MAXLEN', '~', ARGV[2])
redis.call('XADD', KEYS[1], '*', 'd', ARGV[1])
redis.call('PUBLISH', ARGV[3], ARGV[4])
return 1
