-- wrong_kind gives the reason why a verb that takes or settles messages is not for this side of a queue, nil when it is:
-- with sessions such a verb needs the token of one, and without sessions there is none (RECV-11, SESS-5).
local function wrong_kind(side, token)
  if side.by_session and token == "" then
    return "SESSION_REQUIRED"
  end
  if not side.by_session and token ~= "" then
    return "SESSION_NOT_SUPPORTED"
  end
  return nil
end
