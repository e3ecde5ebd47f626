#!/usr/bin/env bash
# Runs the example with a sidecar of its own. It takes about 3 s.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
(cd "$root" && go build -o .tmp/partitions ./examples/partitions)
exec "$here/../with-sidecar.sh" "$root/.tmp/partitions"
