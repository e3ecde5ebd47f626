-- release_left: release bodies that copies of a deleted subscription shared with others, a slice at a time
-- (docs/decisions/0037).
-- Reads: topic.  Writes: left_copies, left_chunks, bodies, body_uses.
-- Flags: allow-oom
--
-- KEYS[1] topic        hash  options and state of the topic
-- KEYS[2] left_copies  zset  "<incarnation of the topic>:<mark>" of a deleted subscription by when that was (ms)
-- KEYS[3] left_chunks  zset  what was chunks of the subscription with this mark
-- KEYS[4] bodies       hash  as in publish
-- KEYS[5] body_uses    hash  as in publish
-- ARGV[1] member       str   of left_copies
--
-- Returns
--   OK  left   1 = there is more
-- Cost: O(slice)
--@include log/parse_chunk
--@include log/release_bodies
local topic, left_copies, left_chunks, member = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
local side = { bodies = KEYS[4], body_uses = KEYS[5] }

redis.call("ZCARD", left_copies) -- as in lib/base/check_key_types
redis.call("HLEN", side.bodies)
redis.call("HLEN", side.body_uses)
if (redis.call("HGET", topic, "incarnation") or "0") ~= string.match(member, "^%d+") then
  redis.call("UNLINK", left_chunks) -- of a topic of this name before
end
local rows = redis.call("ZPOPMIN", left_chunks, 250)
for i = 1, #rows, 2 do
  release_bodies(side, parse_chunk(rows[i]).group)
end
local left = redis.call("ZCARD", left_chunks) > 0
if not left then
  redis.call("ZREM", left_copies, member)
end
return { "OK", left and 1 or 0 }
