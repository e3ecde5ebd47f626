-- load_of_letter describes a dead letter that is resubmitted, of so many bytes, and looks up its original if the target
-- detects duplicates here.
--@include duplicate/history_key
--@include duplicate/find_original
local function load_of_letter(target, letter, size, detects)
  letter.key = detects and history_key(target.partitioned, letter.id, letter.partition) or nil
  letter.original = letter.key and find_original(target, letter.key)
  local new = letter.original and 0 or 1
  return {
    count = 1, total = size, too_large = size > target.max_message_bytes, new = new, bytes = new * size, counted = new,
    keys = letter.key and new or 0, without_session = target.has_sessions and letter.session == "",
  }
end
