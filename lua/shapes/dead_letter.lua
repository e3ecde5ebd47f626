-- Why a message becomes a dead letter.

---@class Cause
-- Variables: why
---@field cause string one letter: see dead_letter/dead_letter_entry and dead_letter/dead_letter_incoming
---@field reason string? DeadLetterReason
---@field description string? DeadLetterErrorDescription

-- What becomes of a message at the end of a transfer.
---@class Fate : Cause
-- Variables: fate
---@field letter string r = removed, k = to the queue's own dead letters, t = to the transfer dead-letter queue

-- Fields of the log entry of a dead letter.
---@class DeadLetterFields
-- Variables: was
---@field n string sequence number before it died
---@field c string failed deliveries before it died
