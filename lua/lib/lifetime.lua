-- lifetime gives the field name "<enqueued>:<expires>" of a message that is enqueued now and lives for ttl_ms, and its
-- ExpiresAt, nil for never: a negative ttl_ms, or one that ends after the year 9999 (TTL-2).
--@include text
local function lifetime(now, ttl_ms)
  if ttl_ms < 0 or now + ttl_ms > 253402300799999 then
    return text(now) .. ":0", nil
  end
  local expires = text(now + ttl_ms)
  return text(now) .. ":" .. expires, expires
end
