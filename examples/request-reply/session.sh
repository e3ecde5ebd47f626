#!/usr/bin/env bash
# What run.sh shows, with the addresses of a sidecar in HTTP, GRPC and ADMIN:
#   session.sh PROGRAM
set -euo pipefail
program="$1"
call() { curl -sS --max-time 20 --unix-socket "$HTTP" "http://sidecar/v1/queues/$1" "${@:2}"; }
ask() { call factors/messages:request -d "{\"message\":{\"text\":\"$1\"},\"replyTo\":\"queues/replies\",\"timeout\":\"$2\"}"; }
expect() { # WHAT WANT GOT
  if [[ "$3" != *"$2"* ]]; then
    echo "$1: want $2, got $3" >&2
    exit 1
  fi
  echo "$1: $2"
}

# Replies go into sessions; nobody may take the next one, which might be another's.
call factors -X PUT -d '{}' >/dev/null
call replies -X PUT -d '{"requiresSession":true,"acceptNext":"FORBIDDEN","defaultMessageTimeToLive":"1h"}' >/dev/null
"$program" work &
worker=$!
trap 'kill "$worker"' EXIT

expect 'one request with curl' '360 = 2 * 2 * 2 * 3 * 3 * 5' "$(ask 360 10s)"

pids=()
for n in 1{01..20}; do
  { expect "one of 20 with curl at the same time" "$n = " "$(ask "$n" 10s)" >"$SCRATCH/$n"; } &
  pids+=("$!")
done
for pid in "${pids[@]}"; do wait "$pid"; done
echo "$(cat "$SCRATCH"/* | sort -u | wc -l) requests with curl at the same time: each got its own reply"

"$program" ask 2000

expect 'a request whose reply takes too long' '"reason":"SERVICE_TIMEOUT"' "$(ask 2000 500ms)"
metric() { curl -sS --unix-socket "$ADMIN" http://sidecar/metrics | grep '^sidebus_orphan_replies_total'; }
for ((i = 0; i < 100; i++)); do
  if [[ "$(metric)" == *' 1' ]]; then break; fi
  sleep 0.1
done
expect 'its late reply was an orphan' 'sidebus_orphan_replies_total 1' "$(metric)"

expect 'a malformed request' '"reason":"SERVICE_TIMEOUT"' "$(ask 'twelve' 200ms)"
dead="$(call factors/messages:peek -d '{"subQueue":"DEAD_LETTER"}')"
expect 'it was dead-lettered with the reason' '"deadLetterReason":"strconv.NumError"' "$dead"
expect 'replies left' '"totalMessageCount":"0"' "$(call replies/runtime)"

trap - EXIT
kill "$worker"
wait "$worker" # it ends in order, with 0
