---@class Topic : Entity, History, Quota, Schedule
-- Variables: topic
---@field version string of its routes
---@field most_bytes int no less than all its subscriptions hold together (README, Quota)
---@field fails_unmatched bool a message that no subscription gets is refused
---@field immortal string times of a copy that never expires: see log/lifetime

-- The copies of one message: see topic/read_copies.
---@class Copies
-- Variables: copies
---@field count int how many there are
---@field text string which subscription gets which form: see topic/each_copy
---@field forms Copy[] the forms that the message has
---@field reasons Cause[]? why copies are dead letters

---@class Copy
-- Variables: copy form
---@field size string bytes, as the id of the log entry has it
---@field bytes int the same as a number
---@field payload string what is stored
---@field session string session, "" = none
---@field ttl_ms int time to live, negative = none
---@field ends_ms int? instant at which it expires at the latest

-- Filters that come or go, by the letter of topic/rule_member.
---@class FilterCounts
-- Variables: added
---@field s int SQL filters
---@field c int correlation filters
