-- tidy: remove the stream of answers of a tenant that asks nothing. It lasts beyond its last answer.
-- Returns 1 removed · 0 it is not there, or answers wait
if redis.call('XLEN', answers) > 0 then return 0 end
return redis.call('DEL', answers)
