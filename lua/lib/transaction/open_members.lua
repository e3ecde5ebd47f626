-- open_members opens the entities that a transaction is about. keys has for each, from the third on, those of the group
-- queue and its owner, and behind all of them the lists that sum up full topics: for each entity args has the number of
-- its list and the version of the routes that it belongs to. Returns the members, and by owner the lists.
--@include entity/open_queue
local function open_members(keys, args, now, count)
  local members, lists, at = {}, {}, 2 + 42 * count
  for i = 1, count do
    local first = 42 * i - 39
    local owner = keys[first + 41]
    local queue = open_queue({ unpack(keys, first, first + 40) }, now, true)
    redis.call("HLEN", owner) -- as in lib/base/check_key_types
    local length, routes = string.match(args[6 + i], "^(%d+):(.*)$")
    if queue then
      queue.owner, queue.forgotten = owner, {}
    end
    if length ~= "0" then
      lists[owner] = { first = at + 1, last = at + length, routes = routes }
    end
    members[i], at = { queue = queue, added = 0 }, at + length
  end
  return members, lists
end
