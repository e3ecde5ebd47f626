#!/usr/bin/env bash
# Runs the example with a sidecar of its own. It takes about 5 s.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
(cd "$root" && go build -o .tmp/reply-queues ./examples/reply-queues)
exec "$here/../with-sidecar.sh" "$here/session.sh" "$root/.tmp/reply-queues"
