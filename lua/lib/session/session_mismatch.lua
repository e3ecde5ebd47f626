-- session_mismatch returns why a verb is not for this side of a queue, nil when it is: with sessions it needs a
-- session's token, and without sessions there is none (RECV-11, SESS-5).
local function session_mismatch(side, token)
  if side.by_session and token == "" then
    return "SESSION_REQUIRED"
  end
  if not side.by_session and token ~= "" then
    return "SESSION_NOT_SUPPORTED"
  end
  return nil
end
