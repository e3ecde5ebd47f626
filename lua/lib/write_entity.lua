-- write_entity makes the hash of a new entity. The note is for whoever looks there. It is also long enough to make Redis keep the
-- hash as a table, in which a field is found at once, and not as a list that every script would search.
--@include alarm_unused
local function write_entity(entity, kind, now, fields)
  redis.call("HSET", entity, "about",
    "A " .. kind .. " of Sidebus. Change it with sidebus entity, not by hand: its keys belong together.",
    "schema", 1, "kind", kind, "created_ms", now, "updated_ms", now, "accessed_ms", now, unpack(fields))
  alarm_unused(entity, tonumber(now))
end
