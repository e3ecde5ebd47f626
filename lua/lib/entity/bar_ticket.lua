-- bar_ticket bars the tickets of a name up to this one: no entity of the name is created with them, and the caller of
-- register_name must get a higher one. A script calls it when there is no entity. After an hour every caller with such
-- a ticket has made its entity or is gone.
local function bar_ticket(barred, ticket)
  redis.call("SET", barred, ticket, "PX", "3600000")
end
