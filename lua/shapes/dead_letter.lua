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
---@field n string sequence number before it became a dead letter
---@field c string failed deliveries before it became a dead letter

-- A dead letter that is to be resubmitted: see the header of resubmit.
---@class Letter
-- Variables: letter
---@field number string its sequence number
---@field ttl_ms int time to live, negative = none
---@field ends_ms int? instant at which it expires, nil = a new life
---@field id string message id
---@field partition string partition key
---@field session string session, "" = none
---@field further string what is added to its changed properties: see log/changes_with
---@field key string? what duplicate detection knows it by
---@field original int? number of the message that it is a duplicate of
