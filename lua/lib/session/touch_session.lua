-- touch_session notes that a session has changed, for save_sessions. how is "added" when only available messages came,
-- the common case, which needs less work; "unblocked" when only its block is gone, so that it does not become idle
-- again (SESS-33c); anything else, or several of these, is "changed".
local function touch_session(queue, session, how)
  local noted = queue.touched[session]
  queue.touched[session] = (noted == nil or noted == how) and how or "changed"
end
