-- delete_subscription: remove a subscription, its rules and all it holds (ENT-8), and make waiting receives look
-- again. With left, remove what is left of a subscription whose topic was deleted: see delete_topic.
-- Reads: topic, entity, locks, dead_locks, session_locks, dead_log.  Writes: topic, subscriptions, rules, every key of
-- the subscription, left_copies, left_chunks.
-- Flags: allow-oom
--
-- KEYS[1] topic          hash  options and state of the topic
-- KEYS[2] subscriptions  hash  folded name -> lib/topic/route_flags.lua
-- KEYS[3] rules          zset  rules of all its subscriptions, in the form of lib/topic/rule_member.lua
-- KEYS[4] left_copies    zset  see release_left
-- KEYS[5] left_chunks    zset  there is none; where its chunks go until their bodies are released
-- KEYS[6] chunks         zset  log entries with several messages: see lib/log/parse_chunk.lua
-- KEYS[7] waiting        zset  sidecar by since when it waits (ms)
-- KEYS[8] dead_waiting   zset  as waiting, of the dead-letter queue
-- KEYS[9] transfers_dead_waiting  zset  as waiting, of its transfer dead-letter queue
-- KEYS[10] entity         hash  options and state of the subscription
-- KEYS[11] session_waiting  hash  session -> where its holder waits
-- KEYS[12] session_locks    zset  held session by the end of its lock (ms)
-- KEYS[13] locks         zset  lock by its end (ms)
-- KEYS[14] dead_locks    zset  as locks, of the dead-letter queue
-- KEYS[15] transfers_dead_locks  zset  as locks, of its transfer dead-letter queue
-- KEYS[16] due           zset  there is none; a queue has its scheduled messages there
-- KEYS[17] dead_log      stream  dead letters
-- KEYS[18] transfers_dead_log stream  transfer dead letters
-- KEYS[19] run_locks     zset  lock of several messages by its end (ms)
-- KEYS[20..] others      -     every other key of the subscription and of its transfer dead-letter queue
-- ARGV[1] now     int  0 = server time
-- ARGV[2] name    str  folded name
-- ARGV[3] left    int  1: only if the topic is gone
-- ARGV[4] unused  int  1: only if it was not used for AutoDeleteOnIdle (IDLE-8)
-- ARGV[5] version int  of the routes from now on, a random number
-- ARGV[6] mark    int  in the name of left_chunks, a random number
-- ARGV[7] incarnation str  only if it is still this one, "" = any
--
-- Returns
--   OK                deleted_ms
--   IN_USE            at_ms    when to look again, 0 = as sweep returns
--   ENTITY_NOT_FOUND
-- Cost: O(rules log N + waiting sidecars); memory is freed in the background
--@include base/now_ms
--@include base/text
--@include wake/wake_all
--@include wake/wake_all_holders
--@include topic/count_filters
--@include entity/touch_at
--@include entity/last_use
--@include entity/unused_at
--@include entity/postpone_removal
local topic, subscriptions, rules, waiting, dead_waiting = KEYS[1], KEYS[2], KEYS[3], KEYS[7], KEYS[8]
local transfers_dead_waiting, entity, session_waiting, session_locks = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
local due, dead_log, transfers_dead_log = KEYS[16], KEYS[17], KEYS[18]
local locks, transfers_dead_locks = { KEYS[13], KEYS[19], KEYS[14], session_locks }, KEYS[15]
local now, name, left, unused = now_ms(ARGV[1]), ARGV[2], ARGV[3] == "1", ARGV[4] == "1"
local version, mark, left_copies, left_chunks, chunks = ARGV[5], ARGV[6], KEYS[4], KEYS[5], KEYS[6]
local incarnation = ARGV[7]

-- If the topic was created again, another caller has removed what was left before.
local other = left and redis.call("EXISTS", topic) == 1
if other or (not left and redis.call("EXISTS", entity) == 0) then
  return { "ENTITY_NOT_FOUND" }
end
if incarnation ~= "" and redis.call("HGET", entity, "incarnation") ~= incarnation then
  return { "ENTITY_NOT_FOUND" }
end
if unused then
  local at = unused_at(entity, due, locks, dead_log, now)
  if not at or at > now then
    return { "IN_USE", "0" }
  end
  -- which sweep does not look at
  if unused_at(entity, due, { transfers_dead_locks }, transfers_dead_log, now) > now then
    return { "IN_USE", postpone_removal(entity, now) }
  end
end
redis.call("HLEN", subscriptions) -- as in lib/base/check_key_types
redis.call("ZCARD", left_copies)
local has_chunks = redis.call("ZCARD", chunks) > 0
if not left then
  redis.call("ZCARD", rules)
  local filters = redis.call("HMGET", entity, "sql_filters", "correlation_filters", "chunked")
  local used = unused and last_use(entity, due, locks, now) or now
  local member = (redis.call("HGET", topic, "incarnation") or "0") .. ":" .. mark
  -- Chunks of a subscription that never had any are of one of this name that an older version deleted. They may refer
  -- to bodies of a topic of before, under numbers that others have now.
  if has_chunks and tonumber(filters[3] or "0") > 0 then -- the first write, because the sidecar may lack the permission
    redis.call("RENAME", chunks, left_chunks)
    redis.call("ZADD", left_copies, text(now), member)
  end
  touch_at(topic, used) -- IDLE-3: what was done with it counts for the topic
  count_filters(topic, entity, { s = -(filters[1] or 0), c = -(filters[2] or 0) })
  redis.call("ZREMRANGEBYLEX", rules, "[" .. name .. "\0", "(" .. name .. "\1")
  redis.call("HSET", topic, "version", version)
end
redis.call("HDEL", subscriptions, name)
wake_all(waiting)
wake_all(dead_waiting)
wake_all(transfers_dead_waiting)
wake_all_holders(session_waiting, session_locks)
redis.call("UNLINK", unpack(KEYS, 6))
return { "OK", text(now) }
