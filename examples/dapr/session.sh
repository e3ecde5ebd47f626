#!/usr/bin/env bash
# What run.sh shows, with the socket of a sidecar in HTTP, a daprd in DAPRD, its Component files in COMPONENTS and the sockets of
# components in SOCKETS:
#   session.sh PROGRAM
set -euo pipefail
program="$1"
source="topics/orders/subscriptions/warehouse"
call() { curl --fail-with-body -sS --max-time 20 --unix-socket "$HTTP" "http://sidecar/v1/$source$1" "${@:2}" 2>&1 || true; }
await() { # WHAT WANT COMMAND...
  local got
  for ((i = 0; i < 200; i++)); do
    got="$("${@:3}")"
    if [[ "$got" == *"$2"* ]]; then
      return
    fi
    sleep 0.1
  done
  echo "$1: want $2, got $got" >&2
  cat "$SCRATCH/daprd" >&2 || true
  exit 1
}
lines() { grep "^$1 " "$SCRATCH/app" || true; }
trap 'kill "${app:-}" "${daprd:-}" 2>/dev/null || true; wait' EXIT

: >"$SCRATCH/app"
"$program" warehouse 127.0.0.1:0 >>"$SCRATCH/app" &
app=$!
await 'the warehouse listens' 'listens on' cat "$SCRATCH/app"
port="$(sed -n 's/listens on .*:\([0-9]*\)$/\1/p' "$SCRATCH/app")"

mkdir "$SCRATCH/api" # daprd's API on sockets, so that no port is taken
DAPR_COMPONENTS_SOCKETS_FOLDER="$SOCKETS" "$DAPRD" --app-id warehouse --app-port "$port" --app-protocol grpc --resources-path "$COMPONENTS" \
  --unix-domain-socket "$SCRATCH/api" --dapr-internal-grpc-listen-address 127.0.0.1 --log-level warn >"$SCRATCH/daprd" 2>&1 &
daprd=$!
await 'the warehouse has a subscription' '"name"' call ''

DAPR_GRPC_ENDPOINT="unix://$SCRATCH/api/dapr-warehouse-grpc.socket" "$program" shop >/dev/null # the SDK tells of its connection
await 'the reminder comes when it is due' 'alice reminded: done' cat "$SCRATCH/app"
await 'what always fails is dead-lettered' 'eve paid: dead-lettered' cat "$SCRATCH/app"
await 'everything is done' '"totalMessageCount":"0"' call /runtime
grep 'type:' "$COMPONENTS/bus.yaml"
lines alice
lines bob
lines eve

# Each customer's steps in order, although bob's payment was not taken at first and eve's never.
steps() { lines "$1" | grep -v 'dead-lettered' | sed 's/,.*//' | uniq | tr '\n' ';'; }
expect() { # CUSTOMER STEPS
  if [[ "$(steps "$1")" != "$2" ]]; then
    echo "$1: want $2 got $(steps "$1")" >&2
    exit 1
  fi
}
expect alice 'alice ordered: done;alice paid: done;alice packed: done;alice reminded: done;'
expect bob 'bob ordered: done;bob paid: retry;bob paid: done;bob packed: done;'
expect eve 'eve ordered: done;eve paid: failed;eve packed: done;'
