-- tidy: delete the empty stream of answers of a tenant that asks nothing. (Redis keeps a stream without entries.)
-- Returns 1 deleted · 0 it is not there, or answers wait
if redis.call('XLEN', answers) > 0 then return 0 end
return redis.call('DEL', answers)
