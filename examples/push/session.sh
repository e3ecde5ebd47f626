#!/usr/bin/env bash
# What run.sh shows, with the sockets of a sidecar in HTTP and ADMIN, and of the app in APP:
#   session.sh PROGRAM
set -euo pipefail
program="$1"
call() { curl --fail-with-body -sS --max-time 20 --unix-socket "$HTTP" "http://sidecar/v1/queues/orders$1" "${@:2}"; }
send() { for order in "$@"; do call /messages:send -d "{\"messages\":[{\"text\":\"$order\"}]}" >/dev/null; done; }
measure() { curl --fail-with-body -sS --unix-socket "$ADMIN" http://sidecar/metrics | grep -F "$1" || true; }
await() { # WHAT WANT COMMAND...
  local got
  for ((i = 0; i < 200; i++)); do
    got="$("${@:3}")"
    if [[ "$got" == *"$2"* ]]; then
      echo "$1: $2"
      return
    fi
    sleep 0.1
  done
  echo "$1: want $2, got $got" >&2
  exit 1
}
start() { "$program" "unix://$APP" "unix://$HTTP" >>"$SCRATCH/app" & app=$!; }
stop() { kill "$app" && wait "$app"; }
trap 'kill "$app" 2>/dev/null || true' EXIT
app=

call '' -X PUT -d '{"lockDuration":"30s","maxDeliveryCount":3}' >/dev/null
send 'green tea' 'bad coffee' 'busy oolong' 'slow matcha'
await 'before the application starts' 'sidebus_handler_reachable{handler="queues/orders"} 0' measure sidebus_handler_reachable
await 'its messages wait and are not locked' '"availableCount":"4"' call /runtime

start
await 'after the application has started' '"activeMessageCount":"0"' call /runtime
await 'dead-lettered' '"deadLetterReason":"NoSuchTea"' call /messages:peek -d '{"subQueue":"DEAD_LETTER"}'
for line in 'green tea: done, delivery 1' 'busy oolong: not now' 'busy oolong: done, delivery 2' 'slow matcha: begun' 'slow matcha: done, and completed by its token'; do
  await 'the application reports' "$line" cat "$SCRATCH/app"
done

stop
send 'white tea'
await 'the application is stopped' 'sidebus_handler_reachable{handler="queues/orders"} 0' measure sidebus_handler_reachable
start
await 'the application is started again' 'white tea: done, delivery 1' cat "$SCRATCH/app"
await 'messages left' '"activeMessageCount":"0"' call /runtime
trap - EXIT
stop
