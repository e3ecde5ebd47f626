-- open_intake makes what has the quota of a member the target of its sends. The queue and the target share what this
-- script learns of sessions.
--@include duplicate/open_history
--@include log/count_messages
local function open_intake(member, quota)
  if member.target then
    return
  end
  local queue, target = member.queue, quota
  local main = queue.main
  member.target, member.first_number = target, target.sequence
  target.scheduled, target.due, target.scheduled_ids = queue.scheduled, queue.due, queue.scheduled_ids
  target.history, target.history_times, target.seen_keys = queue.history, queue.history_times, {}
  target.forgotten = queue.forgotten
  target.largest_sent = target.largest
  open_history(target)
  if queue.is_topic then
    return
  end
  target.log, target.expiry, target.waiting, target.gaps, target.prefix = main.log, main.expiry, main.waiting,
    main.gaps, ""
  target.messages = count_messages(main) + redis.call("ZCARD", target.due)
  target.by_session, target.sessions, target.records, target.touched = queue.by_session, queue.sessions, queue.records,
    queue.touched
end
