-- call-host: add a call to the stream of a host, and wake the host. Trimming comes first: it needs no memory, so a full Redis accepts the
-- script, and a running command can be cancelled there too.
-- KEYS 1 calls of the host
-- ARGV 1 call, JSON · 2 about how many calls are kept · 3 channel of the host's wake-ups · 4 wake-up
-- Returns 1
redis.call('XTRIM', KEYS[1], 'MAXLEN', '~', ARGV[2])
redis.call('XADD', KEYS[1], '*', 'd', ARGV[1])
redis.call('PUBLISH', ARGV[3], ARGV[4])
return 1
