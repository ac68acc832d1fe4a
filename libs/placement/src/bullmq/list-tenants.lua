-- list-tenants: list the tenants that have sessions in their index, and forget the others.
-- KEYS 1 noted · 2 tenants · 3 queues · 4 waiting-queues
-- ARGV 1 prefix of the keys of tenants
-- Returns the tenants
take_noted(KEYS[1], KEYS[2], KEYS[3], KEYS[4])
local found = {}
for _, tenant in ipairs(redis.call('SMEMBERS', KEYS[2])) do
  -- A producer writes the index before it notes the tenant. So a tenant that is forgotten in between is noted again.
  if redis.call('EXISTS', ARGV[1] .. tenant .. ':index') == 1 then
    found[#found + 1] = tenant
  else
    redis.call('SREM', KEYS[2], tenant)
  end
end
return found
