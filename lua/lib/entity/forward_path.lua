-- forward_path returns the path that a forwarding option names, nil for none.
local function forward_path(option)
  return option and option ~= "" and option or nil
end
