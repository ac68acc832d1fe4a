-- tidy: delete a tenant's stream of answers once it is empty, because Redis keeps empty streams.
-- Returns 1 deleted · 0 it does not exist, or answers wait
if redis.call('XLEN', answers) > 0 then return 0 end
return redis.call('DEL', answers)
