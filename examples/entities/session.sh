#!/usr/bin/env bash
# What run.sh shows, with the address of a sidecar in GRPC and a folder for files in SCRATCH.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
export SIDEBUS_GRPC_ADDR="$GRPC"
sidebus() { "$here/../../bin/sidebus" "$@"; }
show() { # WHAT WANTED-EXIT-CODE WANTED-LINE COMMAND...
  local code=0 got
  echo "-- $1"
  got="$("${@:4}" 2>&1)" || code=$?
  echo "$got"
  if ((code != $2)) || [[ "$got" != *"$3"* ]]; then
    echo "want exit code $2 and \"$3\", got $code" >&2
    exit 1
  fi
}

show 'dry run: what would change' 1 '+ queue orders' sidebus entity apply -f "$here/entities.yaml" --dry-run
show 'create the entities' 0 'created 5 entities' sidebus entity apply -f "$here/entities.yaml"
show 'again: nothing to do' 0 '= 5 unchanged' sidebus entity apply -f "$here/entities.yaml"

sidebus send topics/orders-placed 'a car' -p total=31000 >"$SCRATCH/sent"
show 'the rules work' 0 'a car' sidebus receive topics/orders-placed/subscriptions/big --complete

sed 's/maxDeliveryCount: 3/maxDeliveryCount: 5/; s/limit: 1000/limit: 5000/' "$here/entities.yaml" >"$SCRATCH/changed.yaml"
show 'existing entities are not changed' 1 '~ queue orders: maxDeliveryCount 3 -> 5' sidebus entity apply -f "$SCRATCH/changed.yaml"
show 'with --update they are changed' 0 'updated 2 entities' sidebus entity apply -f "$SCRATCH/changed.yaml" --update

show 'export the entities to a file' 0 'maxDeliveryCount: 5' sidebus entity export
sidebus entity export >"$SCRATCH/export.yaml"
show 'applying the export changes nothing' 0 '= 5 unchanged' sidebus entity apply -f "$SCRATCH/export.yaml"

show "a file of the emulator" 0 'created 3 entities' sidebus entity apply -f "$here/Config.json"
show 'its rule' 0 "sys.Label = 'failed'" sidebus rule list topics/mail-sent/subscriptions/bounces
