-- expire_session ends, with SessionExpiryMode SESSION, the messages of a session that are neither locked nor scheduled,
-- because one of them expired (TTL-23): those up to the last number given, as if in one step. Those that are marked as
-- dead letters become that first.
--@include expiry/expire_slice
--@include expiry/mark_expiring
--@include expiry/expiring_up_to
local function expire_session(queue, side, session)
  if side.by_session and queue.expires_sessions then
    local given_up, last = expiring_up_to(queue, session, "d"), queue.main.sequence
    if given_up and expire_slice(queue, side, session, "d", given_up) then
      return mark_expiring(queue, session, "", last)
    end
    expire_slice(queue, side, session, "", last)
  end
end
