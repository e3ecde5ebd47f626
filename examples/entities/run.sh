#!/usr/bin/env bash
# Runs the session with a sidecar of its own.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
exec "$here/../with-sidecar.sh" "$here/session.sh"
