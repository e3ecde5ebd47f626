-- parse_sizes parses the sizes of messages, "<size>*<messages>,<size>*<messages>,...". Returns one for each message.
local function parse_sizes(list)
  local sizes = {}
  for size, messages in string.gmatch(list, "(%d+)%*(%d+)") do
    for _ = 1, tonumber(messages) do
      sizes[#sizes + 1] = size
    end
  end
  return sizes
end
