#!/usr/bin/env bash
# What run.sh shows, with the addresses of a sidecar in HTTP and GRPC, and sidebus on PATH:
#   session.sh READER
set -euo pipefail
reader="$1"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
export SIDEBUS_GRPC_ADDR="$GRPC"
news=topics/news count=400
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true' EXIT

subscribe() { sidebus entity create "$news/subscriptions/$1" "${@:2}"; }
start() { # SUBSCRIPTION PAPER
  "$reader" "$news/subscriptions/$1" >"$SCRATCH/$2" &
  pids+=("$!")
}
published() { if [[ -e "$SCRATCH/published" ]]; then wc -l <"$SCRATCH/published"; else echo 0; fi; }
await() { # WHAT COMMAND...: at most a minute
  for ((i = 0; i < 1200; i++)); do
    if "${@:2}"; then return; fi
    sleep 0.05
  done
  echo "waited in vain: $1" >&2
  exit 1
}
has_published() { (($(published) >= $1)); }
is_empty() {
  local counts
  counts="$(curl --fail-with-body -sS --unix-socket "$HTTP" "http://sidecar/v1/$news/subscriptions/$1/runtime")"
  [[ "$counts" == *'"totalMessageCount":"0"'* ]]
}

# Who wants what. Equality is a correlation; everything else is SQL. A subscription may have several rules.
sidebus entity create "$news"
subscribe europe --rule region --correlation region=EU
subscribe breaking --rule loud --sql "priority >= 8 OR sys.Label LIKE 'breaking/%'"
subscribe asia-and-markets --rule asia --correlation region=AS
sidebus rule add "$news/subscriptions/asia-and-markets" markets --correlation sys.Subject=markets
subscribe digest --rule evening --sql "priority < 8 AND EXISTS(region)" \
  --action "SET edition = region + ' evening'; SET sys.TimeToLive = '12h'"
subscribe audit # without a rule of its own it gets all

start europe europe.read-1
start europe europe.read-2 # two share the work
for name in breaking asia-and-markets digest; do start "$name" "$name.read"; done

"$here/publish.py" "$count" "$SCRATCH/published" &
publisher=$!
pids+=("$publisher")

# Another subscription is created while items are published. The publisher does not notice.
await 'half of the news' has_published $((count / 2))
before="$(published)"
subscribe sport --rule sport --correlation sys.Subject=sport
after="$(published)"
start sport sport.read

wait "$publisher"
for name in europe breaking asia-and-markets digest sport; do await "the readers of $name" is_empty "$name"; done
sidebus peek "$news/subscriptions/audit" --max 0 -o json >"$SCRATCH/audit.peek"
echo
"$here/check.py" "$SCRATCH" "$before" "$after"

# News 13 has priority 9. Why did nobody read it in breaking?
printf '\n$ sidebus rule test %s/subscriptions/breaking --peek %s/subscriptions/audit --number 13\n' "$news" "$news"
why="$(sidebus rule test "$news/subscriptions/breaking" --peek "$news/subscriptions/audit" --number 13)"
echo "$why"
for part in 'rule loud: does not match' "UNKNOWN  priority >= 8  -- priority is '9' (string)"; do
  if [[ "$why" != *"$part"* ]]; then
    echo "rule test: want $part" >&2
    exit 1
  fi
done

readers=()
for pid in "${pids[@]}"; do if [[ "$pid" != "$publisher" ]]; then readers+=("$pid"); fi; done
trap - EXIT
kill "${readers[@]}"
for pid in "${readers[@]}"; do wait "$pid"; done # they end in order, with 0
