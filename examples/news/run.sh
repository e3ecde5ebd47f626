#!/usr/bin/env bash
# Runs the example with a sidecar of its own. It takes about 5 s.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
(cd "$root" && go build -o .tmp/news ./examples/news)
PATH="$root/bin:$PATH" exec "$here/../with-sidecar.sh" "$here/session.sh" "$root/.tmp/news"
