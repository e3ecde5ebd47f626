-- touch_session notes that something about a session has changed, for close_sessions. With added it is only that messages
-- came that are available at once, which is the common case and needs less looking.
local function touch_session(queue, session, added)
  if added and queue.touched[session] == nil then
    queue.touched[session] = "added"
  elseif not added then
    queue.touched[session] = "changed"
  end
end
