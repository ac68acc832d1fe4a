-- forget-tenant: remove a tenant that asks nothing from the list that upkeep walks, unless an entry of it has asked meanwhile.
-- KEYS 1 asking
-- ARGV 1 tenant · 2 the score that was read
-- Returns 1 removed · 0 it has asked meanwhile
if redis.call('ZSCORE', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
return redis.call('ZREM', KEYS[1], ARGV[1])
