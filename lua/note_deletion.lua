-- note_deletion: note that an entity with several partitions, or a subscription of such a topic, is about to be deleted
-- (PART-1). Without the note, what the deletion leaves in partitions would stay for a record that Redis has forgotten.
-- A full Redis takes the note, because it takes the deletion.
-- Reads: nothing.  Writes: deletion.
-- Flags: allow-oom
--
-- KEYS[1] deletion  string  empty; it expires
-- ARGV[1] keep_ms  int  for how long
--
-- Returns
--   OK
-- Cost: O(1)
local deletion, keep_ms = KEYS[1], ARGV[1]

redis.call("SET", deletion, "", "PX", keep_ms)
return { "OK" }
