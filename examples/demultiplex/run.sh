#!/usr/bin/env bash
# Runs the example with a sidecar of its own, over the file of events that is given, else over real logs of this machine.
#   examples/demultiplex/run.sh [EVENTS]
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
events="${1:-$root/.tmp/demultiplex.events}"
mkdir -p "$root/.tmp"
if (($# == 0)); then "$here/events.sh" >"$events"; fi
(cd "$root" && go build -o .tmp/demultiplex ./examples/demultiplex)
exec "$here/../with-sidecar.sh" "$root/.tmp/demultiplex" "$events"
