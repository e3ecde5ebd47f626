-- lifetime returns the times of a message that is enqueued now, "<enqueued>:<expires>", and when it expires, nil for
-- never: a negative ttl_ms, or one that ends after the year 9999 (TTL-2). ends_ms bounds it, nil for no bound; it may
-- be past (TTL-24, TTL-25).
--@include base/text
local function lifetime(now, ttl_ms, ends_ms)
  local expires = ttl_ms >= 0 and now + ttl_ms or ends_ms
  if ends_ms and ends_ms < expires then
    expires = ends_ms
  end
  if not expires or expires > 253402300799999 then
    return text(now) .. ":0", nil
  end
  expires = text(expires)
  return text(now) .. ":" .. expires, expires
end
