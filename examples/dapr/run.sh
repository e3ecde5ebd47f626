#!/usr/bin/env bash
# Runs the example with a sidecar, a private Redis and a daprd of its own:
#   run.sh [sidebus|azure|redis]
# The argument is the folder of the Component file: that of Sidebus; the one for Azure Service Bus, unchanged; or the one for Dapr's
# component of Redis with its type changed. DAPRD names a daprd; without it one is built, which the first time takes minutes.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
component="${1:-sidebus}"

(cd "$here" && go build -o "$root/.tmp/dapr" .)
if [[ -z "${DAPRD:-}" ]]; then
  DAPRD="$root/.tmp/daprd"
  (cd "$root/test/dapr" && go build -ldflags '-s -w' -o "$DAPRD" ./daprd)
fi

export DAPRD SOCKETS COMPONENTS
SOCKETS="$(mktemp -d)"
trap 'rm -rf "$SOCKETS"' EXIT
COMPONENTS="$SOCKETS/components"
mkdir "$COMPONENTS"
sed 's/pubsub\.redis$/pubsub.sidebus/' "$here/components/$component/bus.yaml" >"$COMPONENTS/bus.yaml"
SERVE="--dapr-socket $SOCKETS/sidebus.sock"
if [[ "$component" == azure ]]; then SERVE+=" --dapr-drop-in"; fi
export SERVE
"$here/../with-sidecar.sh" "$here/session.sh" "$root/.tmp/dapr"
