-- write_entity writes the hash of a new entity. The note is for people who look there. It also makes Redis keep the
-- hash as a table, in which a field is found at once, and not as a list.
--@include entity/write_idle_alarm
--@include entity/mark_fenced
local function write_entity(entity, kind, now, fields)
  redis.call("HSET", entity, "about",
    "A " .. kind .. " of Sidebus. Change it with sidebus entity, not by hand: its keys belong together.",
    "schema", 1, "kind", kind, "created_ms", now, "updated_ms", now, "accessed_ms", now, unpack(fields))
  mark_fenced(entity)
  write_idle_alarm(entity, tonumber(now))
end
