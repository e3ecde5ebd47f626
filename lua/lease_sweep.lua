-- lease_sweep: lease the look at all entities to one sidecar, if it is due. It goes on with what another sidecar began
-- and did not end. Without a note, as after FLUSHALL, the look is due; so it is with the note of another run of Redis,
-- which may have forgotten alarms. An instant too far ahead is not believed: the clock went back.
-- Reads: whole_sweep.  Writes: whole_sweep.
-- Flags: allow-oom
--
-- KEYS[1] whole_sweep  hash  sidecar, until (ms) and after of the look under way; next: when the next one begins (ms);
--                            run: of Redis, see below
-- ARGV[1] now       int  0 = server time
-- ARGV[2] sidecar   str  its name
-- ARGV[3] lease_ms  int  for how long
-- ARGV[4] pause_ms  int  between two looks
--
-- Returns
--   OK    after    folded name to go on behind, "" = from the start
--   WAIT  wait_ms  ask again then: it is not time, or another sidecar is at it
-- Cost: O(1)
--@include base/now_ms
--@include base/text
local whole_sweep = KEYS[1]
local now, sidecar, lease_ms, pause_ms = now_ms(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

-- Redis assigns an id to each of its runs. A replica that takes over has one of its own.
local run = string.match(redis.call("INFO", "server"), "run_id:(%w+)") or ""
local note = redis.call("HMGET", whole_sweep, "sidecar", "until", "after", "next", "run")
if note[5] ~= run then
  redis.call("DEL", whole_sweep)
  note = {}
end
local left = tonumber(note[2] or "0") - now
if note[1] and note[1] ~= sidecar and left > 0 and left <= lease_ms then
  return { "WAIT", text(left) }
end
local pause = tonumber(note[4] or "0") - now
if pause > 0 and pause <= pause_ms then
  return { "WAIT", text(pause) }
end
redis.call("HSET", whole_sweep, "sidecar", sidecar, "until", text(now + lease_ms), "run", run)
return { "OK", note[3] or "" }
