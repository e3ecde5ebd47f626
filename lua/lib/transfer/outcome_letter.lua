-- outcome_letter returns the letter for what became of a message that a transfer carries: see note_arrival. refused is
-- what intake/refuse says of it.
local function outcome_letter(refused)
  local letters = {
    ENTITY_DISABLED = "d", ENTITY_FULL = "f", INTERNAL = "f", QUOTA_EXCEEDED = "q", MESSAGE_SIZE_EXCEEDED = "s",
    TOO_MANY_COPIES = "s",
    NO_MATCHING_SUBSCRIPTION = "u", SESSION_ID_MISSING = "m",
  }
  return refused and letters[refused[1]] or "."
end
