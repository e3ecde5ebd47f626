-- receive: lock available messages and hand them out, those that were delivered before first (RECV-2, RECV-8, RECV-9,
-- LOCK-1, TTL-8). It returns positions only: the caller reads the messages it now holds.
-- Reads: all.  Writes: all.
-- Flags: allow-oom
--
-- KEYS[1..41] queue  all keys of the queue, in the order of lib/entity/open_queue.lua
-- ARGV[1] now             int     0 = server time
-- ARGV[2] sub             str     "" or "dead_": which of the two queues is the source
-- ARGV[3] limit           int     most messages to hand out
-- ARGV[4] safe            int     if no message weighs more than this, all calls together may have as many as limit; 0
--                                 = whatever they weigh
-- ARGV[5] most_bytes      int     about how many bytes they may be in all calls together
-- ARGV[6] nonce           str     what makes these locks different from all others
-- ARGV[7] register_below  int     put the sidecar on the waiting list if fewer messages than this are handed out
-- ARGV[8] sidecar         str     its name there
-- ARGV[9..] limit left register ...  per call, in the order in which they are served: most messages; most bytes, with
--                                    "+" before them when it has messages already; whether it waits: 0 = no, 1 = if it
--                                    gets nothing, 2 = anyway
--
-- Returns
--   OK                notifications recheck_ms left locked_until_ms positions deliveries changes spans counts from
--                     entries
--                     recheck_ms: when to look again without being woken; left: 1 = there may be more at once;
--                     positions were delivered before; spans: first and last position, in turn, of what was never
--                     delivered before; deliveries, changes: as lib/answer/values_of.lua; counts: for how many of the
--                     first calls the answer is complete, then for each how many of the messages it gets, in order of
--                     position; or nothing, when each gets as many as its limit; from: of the only span, the
--                     position of the log entry that has its first message, "" when not known; entries: what XRANGE
--                     returns for it, if the messages are small and few; else the caller reads them
--   ENTITY_NOT_FOUND
--   ENTITY_DISABLED   status
--   FORWARDS_ALL      path        the queue forwards all it gets to there (FWD-2)
--   SESSION_REQUIRED  this side of the queue has sessions: see turn
-- Cost: O(messages handed out + slice of what is due), and most_bytes are read when messages may be too large for one
-- answer
--@include base/now_ms
--@include available/take_run
local now, sub, limit, safe, most_bytes = now_ms(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]),
  tonumber(ARGV[5])
local nonce, register_below, sidecar = ARGV[6], tonumber(ARGV[7]), ARGV[8]

local reply = sub == "" and take_run({
  entity = KEYS[1], log = KEYS[2], ready = KEYS[3], waiting = KEYS[5], expiry = KEYS[7], gaps = KEYS[8],
  modified = KEYS[11], runs = KEYS[37], run_locks = KEYS[38], chunks = KEYS[39],
}, now, limit, safe, nonce, register_below, sidecar)
if reply then
  return reply
end
--@rare
--@include entity/open_source
--@include entity/close_queue
--@include transfer/refuse_forwarding
--@include answer/is_heavy
--@include answer/even_weight
--@include log/has_changes
--@include answer/values_of
--@include answer/share_out
--@include available/merge_positions
--@include available/take_available
--@include lock/lock_messages
--@include available/count_available
--@include wake/wait_here
--@include wake/recheck_ms

local queue, side, refusal = open_source(KEYS, now, sub, function(queue, side)
  return side.by_session and { "SESSION_REQUIRED" } or refuse_forwarding(queue, side)
end)
if not queue then
  return refusal
end

-- share_among_calls divides messages by what they weigh.
local weights
local function share_among_calls(positions)
  local calls = {}
  for i = 9, #ARGV, 3 do
    local bytes = ARGV[i + 1]
    calls[#calls + 1] = { limit = tonumber(ARGV[i]), left = tonumber(bytes), is_empty = string.byte(bytes) ~= 43 }
  end
  return share_out(side, positions, calls, { left = most_bytes, is_empty = true }, weights)
end

local heavy, complete, is_cut = is_heavy(queue, side, safe), 0, false
weights = heavy and { even = even_weight(queue, side) }
local old, new, spans, went_on = take_available(queue, side, limit, heavy and function(positions)
  local _, done, taken = share_among_calls(positions)
  complete, is_cut = done, taken < #positions
  return taken
end)
local counts = {}
local positions = #old > 0 and { unpack(old) } or {}
for i, position in ipairs(new) do
  positions[#old + i] = position
end
local deliveries = values_of(side.deliveries, old)
local changes = has_changes(side) and values_of(side.modified, positions) or {}
local waits = #positions < register_below
if heavy then
  local shares = share_among_calls((merge_positions(old, new))) -- again, because some may have expired
  counts, waits = { complete, unpack(shares) }, false
  for n = 1, (#ARGV - 8) / 3 do
    local register = ARGV[8 + 3 * n]
    waits = waits or register == "2" or (register == "1" and not is_cut and (shares[n] or 0) == 0)
  end
end
local locked_until = lock_messages(queue, side, positions, ":" .. nonce)

local still = count_available(side)
if waits then
  wait_here(side.waiting, now, sidecar)
end
if still > 0 and went_on then
  side.newly_available = still
end
local due = queue.alarm > 0 and queue.alarm <= now
local left = (due or (still > 0 and went_on)) and 1 or 0
local notifications = close_queue(queue)
return { "OK", notifications, recheck_ms(queue), left, locked_until, old, deliveries, changes, spans, counts, "", {} }
