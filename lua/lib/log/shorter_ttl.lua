-- shorter_ttl returns the shorter of two times to live in ms; a negative one is none (TTL-5, TTL-6).
local function shorter_ttl(ttl_ms, other_ms)
  if other_ms >= 0 and (ttl_ms < 0 or ttl_ms > other_ms) then
    return other_ms
  end
  return ttl_ms
end
