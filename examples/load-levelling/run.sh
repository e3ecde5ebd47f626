#!/usr/bin/env bash
# Runs the example with a sidecar of its own. It takes about 15 s.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
(cd "$root" && go build -o .tmp/load-levelling ./examples/load-levelling)
exec "$here/../with-sidecar.sh" "$root/.tmp/load-levelling"
