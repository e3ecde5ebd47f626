#!/usr/bin/env bash
# Runs a command with a sidecar of its own: a new one with a private Redis, in a temporary folder that goes when it ends.
#   examples/with-sidecar.sh COMMAND [ARGUMENT...]
# The command finds the addresses of the sidecar in its environment, all unix sockets: GRPC (as gRPC clients take it), HTTP and
# ADMIN (paths, for curl --unix-socket); and in SCRATCH a folder for files of its own. Its exit code is that of this script. Flags in SERVE
# are added to those of the sidecar.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
"$root/test/install.sh" redis
make --silent -C "$root" build

dir="$(mktemp -d)"
mkdir "$dir/scratch"
export GRPC="unix://$dir/grpc" HTTP="$dir/http" ADMIN="$dir/admin" SCRATCH="$dir/scratch"
env -i PATH="$PATH" "$root/bin/sidebus" serve --store embedded --data-dir "$dir/data" --log-format text \
  --grpc-addr "$GRPC" --http-addr "unix://$HTTP" --admin-addr "unix://$ADMIN" ${SERVE:-} 2>"$dir/log" &
sidecar=$!

finish() {
  local code=$?
  kill "$sidecar" 2>/dev/null || true
  wait "$sidecar" || code=$?
  if ((code)); then
    echo "log of the sidecar:" >&2
    tail -n 20 "$dir/log" >&2
  fi
  rm -rf "$dir"
  exit "$code"
}
trap finish EXIT

"$root/bin/sidebus" wait --admin-addr "unix://$ADMIN"
"$@"
