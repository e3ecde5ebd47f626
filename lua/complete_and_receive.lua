-- complete_and_receive: complete locked messages, and then lock the next ones and hand them out (RECV-15), if both can
-- take the short ways of complete and of receive. Else the caller runs these scripts for what was not done.
-- Reads: entity, locks, what is available.  Writes: entity, log, runs, waiting.
-- Flags: allow-oom
--
-- KEYS[1] entity      hash    options and state of the queue
-- KEYS[2] log         stream  messages, id = <position>-<size>
-- KEYS[3] ready       zset    positions that were delivered before
-- KEYS[4] locks       zset    lock by its end (ms)
-- KEYS[5] waiting     zset    sidecar by since when it waits (ms)
-- KEYS[6] expiry      zset    position by ExpiresAt (ms)
-- KEYS[7] gaps        zset    "<first>-<last>" of positions above the cursor that are not to be handed out
-- KEYS[8] modified    hash    position -> changed properties
-- KEYS[9] runs        hash    nonce -> "<first>-<last>,..." of the messages that share a lock
-- KEYS[10] run_locks  zset    nonce of a run by the end of its lock (ms)
-- KEYS[11] chunks     zset    "<first>-<bytes>:<last>:<size>,..." by first, of log entries with several messages
-- KEYS[12] bodies     hash    of a subscription: bodies that several copies share, by number in the topic
-- KEYS[13] body_uses  hash    of a subscription: see lib/topic/store_group.lua
-- ARGV[1] now             int  0 = server time
-- ARGV[2] locks           int  number of locks to complete, none twice
-- ARGV[3] sizes           str  "<size>*<messages>,..." of their messages, in order
-- ARGV[4] limit           int  most messages to hand out
-- ARGV[5] safe            int  if no message weighs more than this, all calls together may have as many as limit; 0 =
--                              whatever they weigh
-- ARGV[6] nonce           str  what makes the new locks different from all others
-- ARGV[7] register_below  int  put the sidecar on the waiting list if fewer messages than this are handed out
-- ARGV[8] sidecar         str  its name there
-- ARGV[9] count           int  number of nonces
-- ARGV[10..?] nonce positions ...  str  for each nonce the positions of its locks in the form of a run
--
-- Returns
--   OK         notifications recheck_ms left locked_until_ms positions deliveries changes spans counts from entries
--              all are completed; the rest as receive
--   COMPLETED  all are completed; nothing was received: see receive
--   SEPARATE   nothing was received, and complete must run: no lock has ended, and of the messages at most some whose
--              locks hold have left the log
-- Cost: O(locks + messages handed out)
--@include base/now_ms
--@include lock/complete_runs
--@include available/take_run
local now, total, sizes, limit, safe, nonce = now_ms(ARGV[1]), tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]),
  tonumber(ARGV[5]), ARGV[6]
local register_below, sidecar, nonces, completed = tonumber(ARGV[7]), ARGV[8], {}, {}
for i = 1, tonumber(ARGV[9]) do
  nonces[i], completed[i] = ARGV[8 + 2 * i], ARGV[9 + 2 * i]
end

local entity, waiting = KEYS[1], KEYS[5]
local values = redis.call("HMGET", entity, "kind", "requires_session", "run_messages", "bytes", "chunked",
  "chunk_extra")
if total == 0 or (values[1] ~= "queue" and values[1] ~= "subscription") or values[2] == "1" then
  return { "SEPARATE" } -- complete finds out why, also if it must wait for durability
end
local side = {
  entity = entity, log = KEYS[2], ready = KEYS[3], locks = KEYS[4], waiting = waiting, expiry = KEYS[6],
  gaps = KEYS[7], modified = KEYS[8], runs = KEYS[9], run_locks = KEYS[10], chunks = KEYS[11], bodies = KEYS[12],
  body_uses = KEYS[13], run_messages = tonumber(values[3] or "0"), bytes = tonumber(values[4] or "0"),
  chunked = tonumber(values[5] or "0"), chunk_extra = tonumber(values[6] or "0"),
}
-- As in lib/base/check_key_types, of what the two do not look at before they write.
redis.call("ZCARD", waiting)
redis.call("ZCARD", side.chunks)
if values[1] ~= "queue" and side.chunked > 0 then
  redis.call("HLEN", side.bodies)
  redis.call("HLEN", side.body_uses)
end
if not complete_runs(entity, side, nonces, completed, total, sizes, now) then
  return { "SEPARATE" }
end
return take_run(side, now, limit, safe, nonce, register_below, sidecar) or { "COMPLETED" }
