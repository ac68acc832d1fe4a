-- take: hand out the head of the mailbox to its owner.
-- ARGV 3 fence · 4 host
-- Returns {0, life} nothing to start · {1|2|3, entry…} see take_head · {-1} fenced
if not owns(ARGV[3], ARGV[4]) then return {-1} end
local reply = take_head(ARGV[3], ARGV[4])
ring()
return reply
