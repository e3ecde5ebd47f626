#!/usr/bin/env bash
# Runs the experiment with a sidecar of its own. It takes about 12 s, most of which is waiting for the locks of killed workers.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
(cd "$root" && go build -o .tmp/order-workflow ./examples/order-workflow)
# shellcheck disable=SC2016 # for the inner shell
exec "$here/../with-sidecar.sh" bash -c '"$1" run "$SCRATCH"' - "$root/.tmp/order-workflow"
