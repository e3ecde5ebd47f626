-- The request id of a call (IDEM-1): see request/read_request.

---@class Request
-- Variables: request
---@field id string the request id
---@field digest string of number, sizes and ids of the messages
---@field seed string makes the ids of messages that have none
