-- announce: claim the question whose announcement is due for the longest time. The claim ends by itself, so that the
-- question of a sender that has died is sent by another one.
-- ARGV 2 ms after which it is due again
-- Returns {id, how often it was claimed with this time}, {} none is due
local at = now_ms()
local id = redis.call('ZRANGEBYSCORE', unannounced, '-inf', text_of(at), 'LIMIT', 0, 1)[1]
if not id then return {} end
redis.call('ZADD', unannounced, text_of(at + ARGV[2]), id)
return {id, redis.call('HINCRBY', announcements, id, 1)}
