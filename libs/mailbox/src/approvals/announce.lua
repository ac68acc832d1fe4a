-- announce: claim the announcement that has been due longest. The claim expires, because its sender may die.
-- ARGV 2 ms until a claimed announcement is due again
-- Returns {id, number of claims, this one included} · {} no announcement is due
local at = now_ms()
local id = redis.call('ZRANGEBYSCORE', unannounced, '-inf', text_of(at), 'LIMIT', 0, 1)[1]
if not id then return {} end
redis.call('ZADD', unannounced, text_of(at + ARGV[2]), id)
return {id, redis.call('HINCRBY', announcements, id, 1)}
