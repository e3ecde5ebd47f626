-- register_name: put an entity's name on the namespace's list and return the ticket with which create_entity may make
-- it (ENT-17). The entity counts, the list only makes it findable. A name may be listed without its entity, but not
-- the other way round: a script that takes a name off first bars its ticket (lib/entity/bar_ticket.lua).
-- Reads: names.  Writes: names, registered.
--
-- KEYS[1] names       zset  folded names, all with score 0
-- KEYS[2] registered  hash  folded name -> its ticket; "" -> the last ticket that was given
-- ARGV[1] now         int   0 = server time
-- ARGV[2] name        str   folded name
-- ARGV[3] limit       int   most names there may be (QUOTA-1), 0 = no bound
-- ARGV[4] above       int   a ticket must be higher than this one, which is barred
-- ARGV[5] elsewhere   int   how many names the namespace has on other lists
--
-- Returns
--   OK              ticket    that of the name, which all who want to make the entity share
--   QUOTA_EXCEEDED
-- Cost: O(log names)
--@include base/now_ms
--@include base/text
local names, registered = KEYS[1], KEYS[2]
local now, name, limit, above = now_ms(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local elsewhere = tonumber(ARGV[5])

local is_listed = redis.call("ZSCORE", names, name)
local tickets = redis.call("HMGET", registered, name, "")
local ticket, last = tonumber(tickets[1] or "0"), tonumber(tickets[2] or "0")
if is_listed and ticket >= above + 1 then
  return { "OK", text(ticket) }
end
if limit > 0 and redis.call("ZCARD", names) + elsewhere >= limit and not is_listed then
  return { "QUOTA_EXCEEDED" }
end
ticket = math.max(last + 1, above + 1, now)
redis.call("ZADD", names, 0, name)
redis.call("HSET", registered, name, text(ticket), "", text(ticket))
return { "OK", text(ticket) }
