-- too_many_copies reports whether so many copies, of so many bytes together, are more than one script stores:
-- semantics.MaxCopies and MaxCopyBytes (docs/limits.md). A topic with larger messages takes the bytes of one.
local function too_many_copies(topic, copies, bytes)
  return copies > 5000 or bytes > math.max(67108864, topic.max_message_bytes)
end
