-- Code that the scripts of approvals share. Each script begins with the parts that it uses (compose-script.ts).
-- An asker asks one question at a time. Its text is `<session> <generation> <entry>`.
-- KEYS  1 questions of one tenant; all other keys are built from ARGV[1] and share its hash tag
-- ARGV  1 key prefix of the tenant's approvals · then the script's own
--
-- APPROVALS-1. Every script is atomic, and safe when it arrives twice.
-- APPROVALS-2. A question exists exactly as long as an asker asks it.
-- APPROVALS-3. The step that applies an answer removes it from the stream. Waiting answers are applied before a grant
--              is used, so nothing starts on a grant whose revocation has been written.
-- APPROVALS-4. An asker whose question was decided stays in `decided` until its session has received the decision.
local prefix = ARGV[1]
local questions, pending, asked = KEYS[1], prefix .. 'pending', prefix .. 'asked'
local answers, decided, grants = prefix .. 'answers', prefix .. 'decided', prefix .. 'grants'
local unannounced, announcements = prefix .. 'unannounced', prefix .. 'announcements'

local function askers_key(id) return prefix .. 'askers:' .. id end
local function grant_key(id) return prefix .. 'grant:' .. id end
local function end_key(id) return prefix .. 'ended:' .. id end
local function answered_key(asker) return prefix .. 'answered:' .. asker end
local function covering_key(generation) return prefix .. 'covering:' .. generation end
local function denials_key(session) return prefix .. 'denials:' .. session end
local function hash_of(id) return string.match(id, '^[^.]+') end

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local function text_of(number) return string.format('%.0f', number) end

-- Publishes the id of a question that has changed.
local function publish(id) redis.call('PUBLISH', prefix .. 'feed', id) end

-- Returns the ids of the grants of scope `prefix`, whose score is infinite because they do not expire.
local function endless_grants() return redis.call('ZRANGEBYSCORE', grants, '+inf', '+inf') end

-- Keeps the list of grants until its last grant expires.
local function keep_grants(retention)
  if #endless_grants() > 0 then redis.call('PERSIST', grants) else redis.call('PEXPIRE', grants, retention) end
end

local function split(text) return string.match(text or '', '^(%S+) (%S+)$') end

-- Removes an asker from its question. Returns the question's id, the asker's binding, and true if no asker is left.
local function leave(asker)
  redis.call('ZREM', pending, asker)
  local id, binding = split(redis.call('HGET', asked, asker))
  if not id then return nil end
  redis.call('HDEL', asked, asker)
  redis.call('ZREM', askers_key(id), asker)
  local is_over = redis.call('EXISTS', askers_key(id)) == 0
  if is_over then
    redis.call('HDEL', questions, hash_of(id))
    redis.call('ZREM', unannounced, id)
    redis.call('HDEL', announcements, id)
  end
  return id, binding, is_over
end
