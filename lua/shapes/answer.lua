-- How much an answer may hold (docs/decisions/0012).

---@class Budget
-- Variables: call total
---@field left int bytes that still fit
---@field is_empty bool it has no message yet, so one always fits
---@field limit int? messages that a call still wants

---@class Weights
-- Variables: weights
---@field even int? what every message counts for; else weights has what was weighed, by position
