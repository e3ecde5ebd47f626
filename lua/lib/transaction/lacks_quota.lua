-- lacks_quota reports whether so many bytes more may be too many, and the bytes of a topic must be added up first.
local function lacks_quota(quota, more)
  return quota.most_bytes and not quota.is_exact and quota.held + more > quota.max_bytes
end
