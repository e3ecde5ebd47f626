-- append_letter appends a dead letter to the target that it is resubmitted to, as a new message. entry is that of its
-- log, change its changed properties or nil. Returns its new number.
--@include log/shorter_ttl
--@include intake/append_message
--@include intake/raise_largest
--@include duplicate/remember_key
local function append_letter(target, letter, entry, change)
  local payload = entry[2][2]
  local number = append_message(target, target, {
    size = string.match(entry[1], "%d+$"), payload = payload, session = letter.session, ends_ms = letter.ends_ms,
    ttl_ms = shorter_ttl(letter.ttl_ms, target.default_ttl_ms),
  })
  if change then
    redis.call("HSET", target.modified, number, change)
  end
  if letter.key then
    remember_key(target, letter.key, target.sequence)
  end
  raise_largest(target, #payload)
  return number
end
