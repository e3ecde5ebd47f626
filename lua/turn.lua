-- turn: in held sessions, complete messages (SETTLE-3) and then lock the next ones and hand them out, each session's in
-- order (SESS-25 to SESS-28). Several calls share one script: what a holder gets next depends on what it has completed,
-- so both are one step (docs/decisions/0036).
-- Reads: all.  Writes: all.
-- Flags: allow-oom
--
-- KEYS[1..41] queue  all keys of the queue, in the order of lib/entity/open_queue.lua
-- ARGV[1] now        str  "<ms>", 0 = server time, or "<ms>;<level>": see lib/entity/lacks_fence.lua
-- ARGV[2] most_bytes int  about how many bytes the messages of all sessions together may be
-- ARGV[3] nonce      str  what makes these locks different from all others
-- ARGV[4] sidecar    str  where a holder waits for more
-- ARGV[5..] token limit left register count ...  per call: the session's token, most messages to lock, most bytes, with
--                                          "+" before them when the call has messages already, whether the holder
--                                          waits: 0 = no, 1 = if it gets nothing, 2 = anyway, and how many to complete,
--                                          of which each has its lock, as it is in locks behind the session, and its id
--
-- Returns
--   OK                notifications recheck_ms deliveries changes, then per call
--                       "<done> <left> <locked_until_ms> <position> ..."  done: "-", then for each message to complete
--                                                1 = done, 0 = lost; left: 1 = there may be more at once that fits
--                       SESSION_LOCK_LOST
--                     deliveries, changes: of the messages of all calls, as lib/answer/values_of.lua
--   ENTITY_DISABLED   status, then per call as above: nothing is handed out, but completed
--   SESSION_NOT_SUPPORTED  status, if it permits no receiving, else ""
--   ENTITY_NOT_FOUND
--   NEEDS_FENCE     level   the caller must wait for that durability; nothing was done
-- Cost: O(calls log N + messages + slice of what is due), and most_bytes are read when messages may be too large for
-- one answer
--@include base/now_ms
--@include session/turn_plainly
local now, awaited = now_ms(ARGV[1])
local reply = turn_plainly(KEYS, ARGV, now, awaited)
if reply then
  return reply
end
--@rare
--@include base/text
--@include entity/open_queue
--@include entity/lacks_fence
--@include entity/can_receive
--@include entity/touch
--@include session/read_turns
--@include session/resolve_tokens
--@include session/complete_held
--@include session/hand_out
--@include answer/values_of
--@include log/has_changes
--@include wake/recheck_ms
local most_bytes, nonce, sidecar = tonumber(ARGV[2]), ":" .. ARGV[3], ARGV[4]

local queue = open_queue(KEYS, now)
if not queue then
  return { "ENTITY_NOT_FOUND" }
end
if not queue.has_sessions then
  return { "SESSION_NOT_SUPPORTED", can_receive(queue.status) and "" or queue.status }
end

local turns, tokens, wants, completes = read_turns(ARGV, 5)
local refusal = completes and lacks_fence(queue.entity, queue.kind, awaited)
if refusal then
  return refusal
end
local held, hands_out = resolve_tokens(queue, tokens), wants and can_receive(queue.status)
if completes or hands_out then
  touch(queue.entity, now)
end
if completes then
  complete_held(queue, held, turns, ARGV)
end

local function answer(notifications)
  local rows, all = {}, {}
  for i, turn in ipairs(turns) do
    local holder = held[turn.token]
    local row = { turn.done, turn.more and "1" or "0", holder and text(holder.ends) }
    for n, position in ipairs(turn.positions or {}) do
      row[n + 3], all[#all + 1] = position, position
    end
    rows[i] = holder and table.concat(row, " ") or "SESSION_LOCK_LOST"
  end
  if wants and not hands_out then
    return { "ENTITY_DISABLED", queue.status, unpack(rows) }
  end
  local any = #all > 0 and redis.call("EXISTS", queue.main.deliveries) == 1
  local deliveries = any and values_of(queue.main.deliveries, all) or {}
  local changes = has_changes(queue.main) and values_of(queue.main.modified, all) or {}
  return { "OK", notifications, recheck_ms(queue), deliveries, changes, unpack(rows) }
end

if not hands_out then
  return answer("0")
end
-- Nearly always nothing is due, and nothing expires: what the other cases need is long.
if (queue.alarm == 0 or now < queue.alarm) and redis.call("EXISTS", queue.main.expiry) == 0 then
  hand_out(queue, held, turns, most_bytes, nonce, sidecar)
  return answer("0")
end
--@rare
--@include due/clear_due
--@include entity/close_queue
--@include session/expire_in_session
clear_due(queue)
hand_out(queue, held, turns, most_bytes, nonce, sidecar, expire_in_session)
return answer(close_queue(queue))
