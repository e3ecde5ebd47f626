#!/usr/bin/env bash
# Fails when the .proto files break a lint rule or the generated files are not what they generate.
set -euo pipefail

proto="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
fresh="$(mktemp -d)"
trap 'rm -rf "$fresh"' EXIT

"$proto/generate.sh" "$fresh"
(cd "$proto" && "../.tmp/bin/buf" lint)

stale=0
while IFS= read -r file; do
  if ! diff -q "$fresh/$file" "$proto/$file" >/dev/null 2>&1; then
    echo "stale: proto/$file" >&2
    stale=1
  fi
done < <({ cd "$fresh" && find . -type f; cd "$proto" && find . -name '*.pb.go' -o -name '*.pb.gw.go' -o -name '*.swagger.json'; } | sort -u)
if ((stale)); then
  echo "run proto/generate.sh and commit what it writes" >&2
  exit 1
fi
