-- check_key_types ends the script, with an error of Redis, if a key has another type than the script takes it for.
-- Redis keeps what a script wrote before it failed, so the error must come before the first write
-- (docs/decisions/0013). The first of the sorted sets must be short, such as a waiting list: Redis looks at that many
-- members. others are keys that rarely exist: hashes up to the place last, then streams.
local function check_key_types(sorted, others, last)
  redis.call("ZINTERCARD", #sorted, unpack(sorted))
  if #others > 0 and redis.call("EXISTS", unpack(others)) > 0 then
    for i, key in ipairs(others) do
      if i <= last then
        redis.call("HLEN", key)
      else
        redis.call("XLEN", key)
      end
    end
  end
end
