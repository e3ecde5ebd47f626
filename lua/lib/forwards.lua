-- forwards gives the path that an entity's option names, nil for none.
local function forwards(option)
  return option and option ~= "" and option or nil
end
