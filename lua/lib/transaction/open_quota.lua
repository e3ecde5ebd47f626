-- open_quota returns what has the quota that counts for a member of a transaction: its queue or topic as a send reads
-- it, opened once; nil when there is none. keys and lists are as in open_members. The bytes of a topic are exact if a
-- list of now sums them up; else they are a bound.
--@include entity/open_target
--@include entity/open_topic
--@include entity/held_bytes
local function open_quota(quotas, member, keys, lists)
  local queue = member.queue
  local quota, list = quotas[queue.owner], lists[queue.owner]
  if quota then
    return quota
  end
  quota = open_target(queue.owner, queue.now)
  if not quota then
    quota = open_topic(queue.owner, queue.now)
    if not quota then
      return nil
    end
    quota.held, quota.dead_bytes = quota.most_bytes, 0
    if list and list.routes == quota.version then
      quota.held, quota.dead_bytes = held_bytes(keys, list.first, list.last)
      quota.is_exact = true
    end
  end
  quotas[queue.owner] = quota
  return quota
end
