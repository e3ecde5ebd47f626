#!/usr/bin/env bash
# Runs the example with a sidecar of its own. It takes about 10 s.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
(cd "$root" && go build -o .tmp/push ./examples/push)

dir="$(mktemp -d)"
trap 'rm -rf "$dir"' EXIT
export APP="$dir/app"
sed "s|http://127.0.0.1:8080|unix://$APP:|" "$here/sidebus.yaml" >"$dir/sidebus.yaml"
SERVE="--config $dir/sidebus.yaml" "$here/../with-sidecar.sh" "$here/session.sh" "$root/.tmp/push"
