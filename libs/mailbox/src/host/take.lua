-- take: hand out the head of the mailbox to its owner.
-- ARGV 3 fence · 4 host
-- Returns {0, life} nothing to start · {1|2|3, entry…} see take_head · {-1} fenced
local owner = read_as_owner(ARGV[3], ARGV[4])
if not owner then return {-1} end
local reply = take_head(ARGV[3], ARGV[4], owner)
if reply[1] == 1 then redis.call('HSET', state, 'run', reply[2]) end
ring()
return reply
