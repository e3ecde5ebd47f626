-- format_runs formats the numbers of an answer in few words: those that follow one another as "<first>+<count>",
-- duplicates with the sign turned.
--@include base/text
local function format_runs(answer)
  local words, first, count = {}, nil, 0
  for i = 2, #answer + 1 do
    local number = tonumber(answer[i] or "")
    if first and number == first + (first < 0 and -count or count) then
      count = count + 1
    else
      if first then
        words[#words + 1] = count > 1 and text(first) .. "+" .. text(count) or text(first)
      end
      first, count = number, 1
    end
  end
  return table.concat(words, " ")
end
