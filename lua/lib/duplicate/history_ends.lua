-- history_ends returns when to remove a key that was accepted at an instant: soon after its window, so that several go
-- together. Sends remove it earlier in passing.
local function history_ends(target, accepted)
  return accepted + target.duplicate_window_ms + math.min(60000, math.floor(target.duplicate_window_ms / 10))
end
