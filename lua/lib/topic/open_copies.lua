-- open_copies opens the subscriptions that get copies. levels has a letter for each, which says which of its keys
-- follow in the list from a place on: p = the groups plain and shared, which most copies need; s = the groups plain and
-- sessions; w = the group queue, for a copy that is a dead letter or pushes others out. Returns the targets; which need
-- more keys, as number and letter in turn, nil when none does; and where the list goes on.
--@keys plain entity log expiry waiting
--@keys shared chunks ready_sessions stop
--@include entity/open_queue
--@include base/check_key_types
--@include session/open_target_sessions
--@include entity/forward_path
local function open_copies(levels, keys, at, now)
  local targets, needs = {}, {}
  local counts = { p = 7, s = 11, w = 41 }
  for i = 1, #levels do
    local level = string.sub(levels, i, i)
    local own = { unpack(keys, at, at + counts[level] - 1) }
    at = at + counts[level]
    local values = redis.call("HMGET", own[1], "requires_session", "default_ttl_ms", "max_message_count", "overflow",
      "sequence",
      "bytes", "alarm_ms", "largest", "forward_to", "forwarder_called", "chunked",
      "chunk_extra")
    local target = {
      now = now, entity = own[1], has_sessions = values[1] == "1", default_ttl_ms = tonumber(values[2]),
      max_message_count = tonumber(values[3]), overflow = values[4], sequence = tonumber(values[5] or "0"),
      bytes = tonumber(values[6] or "0"), alarm = tonumber(values[7] or "0"), largest = tonumber(values[8] or "0"),
      first = tonumber(values[5] or "0"), added = 0, newly_available = 0, forwards = forward_path(values[9]),
      forwarder_called = values[10] == "1", chunked = tonumber(values[11] or "0"),
      chunk_extra = tonumber(values[12] or "0"),
    }
    target.makes_room = target.max_message_count > 0 and target.overflow ~= "REJECT"
    target.is_plain = level == "p" and target.default_ttl_ms < 0 -- nothing is to be done for a copy but to append it
    target.shares = target.is_plain and target.max_message_count == 0 and not target.forwards
    if level == "w" then
      target.queue = open_queue(own, now)
      target.log, target.waiting, target.expiry = own[2], own[5], own[7]
    else
      target.log, target.expiry, target.waiting = own[2], own[3], own[4]
      check_key_types({ own[4], own[3], level == "p" and own[5] or nil }, {}, 0)
      if level == "p" then
        target.chunks, target.ready_sessions, target.stop = own[5], own[6], own[7]
      end
      if target.makes_room then
        needs[#needs + 1], needs[#needs + 2] = i, "w"
      elseif target.has_sessions and level == "p" then
        needs[#needs + 1], needs[#needs + 2] = i, "s"
      elseif target.has_sessions then
        check_key_types({ own[4], own[5], own[7], own[8], own[10], own[11] }, { own[6], own[9] }, 2)
        open_target_sessions(target, { unpack(own, 5, 11) })
        target.puts = {}
      end
    end
    local messages = redis.call("XLEN", target.log) + target.chunk_extra -- this also checks its type
    if target.max_message_count > 0 and not target.makes_room then
      target.messages = messages
    end
    targets[i] = target
  end
  return targets, #needs > 0 and needs or nil, at
end
