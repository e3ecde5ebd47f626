-- open_copies opens the subscriptions that get copies. levels has a letter for each that says which of its keys are given, from a place in
-- a list on:
--   p  entity log expiry waiting, which is all that most copies need
--   s  these, then those of lib/open_target_sessions.lua, for a subscription with sessions
--   w  all, in the order of lib/open_queue.lua, for a copy that is a dead letter or may push others out
-- Returns the subscriptions and which of them need more keys, as number and letter in turn; nil when none does.
--@include open_queue
--@include open_target_sessions
--@include forwards
local function open_copies(levels, keys, at, now)
  local targets, needs = {}, {}
  local counts = { p = 4, s = 11, w = 36 }
  for i = 1, #levels do
    local level = string.sub(levels, i, i)
    local own = { unpack(keys, at, at + counts[level] - 1) }
    at = at + counts[level]
    local values = redis.call("HMGET", own[1], "requires_session", "default_ttl_ms", "max_message_count", "overflow", "sequence",
      "bytes", "alarm_ms", "largest", "forward_to", "forwarder_called")
    local target = {
      now = now, entity = own[1], has_sessions = values[1] == "1", default_ttl_ms = tonumber(values[2]),
      max_message_count = tonumber(values[3]), overflow = values[4], sequence = tonumber(values[5] or "0"),
      bytes = tonumber(values[6] or "0"), alarm = tonumber(values[7] or "0"), largest = tonumber(values[8] or "0"),
      first = tonumber(values[5] or "0"), added = 0, came = 0, forwards = forwards(values[9]), forwarder_called = values[10] == "1",
    }
    target.makes_room = target.max_message_count > 0 and target.overflow ~= "REJECT"
    target.is_plain = level == "p" and target.default_ttl_ms < 0 -- nothing is to be done for a copy but to append it
    if level == "w" then
      target.queue = open_queue(own, now)
      target.log, target.waiting, target.expiry = own[2], own[5], own[7]
    else
      target.log, target.expiry, target.waiting = own[2], own[3], own[4]
      if target.makes_room then
        needs[#needs + 1], needs[#needs + 2] = i, "w"
      elseif target.has_sessions and level == "p" then
        needs[#needs + 1], needs[#needs + 2] = i, "s"
      elseif target.has_sessions then
        open_target_sessions(target, { unpack(own, 5, 11) })
        target.puts = {}
      end
    end
    targets[i] = target
  end
  return targets, #needs > 0 and needs or nil
end
