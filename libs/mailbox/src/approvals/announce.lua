-- announce: claim the question whose announcement is due longest. The claim expires in case its sender dies.
-- ARGV 2 ms until it is due again
-- Returns {id, number of claims, this one included} · {} none is due
local at = now_ms()
local id = redis.call('ZRANGEBYSCORE', unannounced, '-inf', text_of(at), 'LIMIT', 0, 1)[1]
if not id then return {} end
redis.call('ZADD', unannounced, text_of(at + ARGV[2]), id)
return {id, redis.call('HINCRBY', announcements, id, 1)}
