-- delete_subscription: remove a subscription, its rules and all it holds (ENT-8), and make waiting receives look again. With left,
-- remove what is left of one whose topic was deleted: see delete_topic.
-- Reads: topic, entity, locks, dead_locks, session_locks, dead_log.  Writes: topic, subscriptions, rules, every key of the subscription.
-- Flags: allow-oom
--
-- KEYS[1] topic          hash  options and state of the topic
-- KEYS[2] subscriptions  hash  folded name -> lib/route_flags.lua
-- KEYS[3] rules          zset  rules of all its subscriptions, in the form of lib/rule_member.lua
-- KEYS[4] waiting        zset  sidecar by since when it waits (ms)
-- KEYS[5] dead_waiting   zset  as waiting, of the dead-letter queue
-- KEYS[6] transfers_waiting  zset  as waiting, of its transfer dead-letter queue
-- KEYS[7] entity         hash  options and state of the subscription
-- KEYS[8] session_waiting  hash  session -> where its holder waits
-- KEYS[9] session_locks    zset  held session by the end of its lock (ms)
-- KEYS[10] locks         zset  lock by its end (ms)
-- KEYS[11] dead_locks    zset  as locks, of the dead-letter queue
-- KEYS[12] transfers_locks  zset  as locks, of its transfer dead-letter queue
-- KEYS[13] due           zset  there is none; a queue has its scheduled messages there
-- KEYS[14] dead_log      stream  dead letters
-- KEYS[15] transfers_log stream  transfer dead letters
-- KEYS[16..] others      -     every other key of the subscription and of its transfer dead-letter queue
-- ARGV[1] now     int  0 = server time
-- ARGV[2] name    str  folded name
-- ARGV[3] left    int  1: only if the topic is gone
-- ARGV[4] unused  int  1: only if nobody has used it for as long as AutoDeleteOnIdle says (IDLE-8)
--
-- Returns
--   OK                deleted_ms
--   IN_USE            at_ms    when to look again, 0 = see what sweep says
--   ENTITY_NOT_FOUND
-- Cost: O(rules log N + waiting sidecars); memory is freed in the background
--@include now_ms
--@include text
--@include wake_all
--@include wake_holders
--@include count_filters
--@include note_use
--@include last_use
--@include unused_at
--@include keep_a_while
local topic, subscriptions, rules, waiting, dead_waiting = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local transfers_waiting, entity, session_waiting, session_locks = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local due, dead_log, transfers_log = KEYS[13], KEYS[14], KEYS[15]
local locks, transfers_locks = { KEYS[10], KEYS[11], session_locks }, KEYS[12]
local now, name, left, unused = now_ms(ARGV[1]), ARGV[2], ARGV[3] == "1", ARGV[4] == "1"

-- A topic that was made anew is none of our business: somebody else has removed what was left, before that was possible.
local other = left and redis.call("EXISTS", topic) == 1
if other or (not left and redis.call("EXISTS", entity) == 0) then
  return { "ENTITY_NOT_FOUND" }
end
if unused then
  local at = unused_at(entity, due, locks, dead_log, now)
  if not at or at > now then
    return { "IN_USE", "0" }
  end
  if unused_at(entity, due, { transfers_locks }, transfers_log, now) > now then -- which sweep does not look at
    return { "IN_USE", keep_a_while(entity, now) }
  end
end
if not left then
  note_use(topic, unused and last_use(entity, due, locks, now) or now) -- IDLE-3: what was done with it counts for the topic
  local filters = redis.call("HMGET", entity, "sql_filters", "correlation_filters")
  count_filters(topic, entity, { s = -(filters[1] or 0), c = -(filters[2] or 0) })
  redis.call("ZREMRANGEBYLEX", rules, "[" .. name .. "\0", "(" .. name .. "\1")
  redis.call("HINCRBY", topic, "version", 1)
end
redis.call("HDEL", subscriptions, name)
wake_all(waiting)
wake_all(dead_waiting)
wake_all(transfers_waiting)
wake_holders(session_waiting, session_locks)
redis.call("UNLINK", unpack(KEYS, 4))
return { "OK", text(now) }
