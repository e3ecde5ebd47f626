#!/usr/bin/env bash
# Fails when the .proto files break a lint rule, break clients of the last version, or do not generate the generated files.
set -euo pipefail

proto="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
fresh="$(mktemp -d)"
trap 'rm -rf "$fresh"' EXIT

"$proto/generate.sh" "$fresh"
(cd "$proto" && "../.tmp/bin/buf" lint)

# Compatibility with the last tag; before the first one, with an image of the API (make proto-baseline).
against="baseline.binpb"
if tag="$(git -C "$proto" describe --tags --match 'v*' --abbrev=0 2>/dev/null)"; then
  against="../.git#tag=$tag,subdir=proto"
fi
(cd "$proto" && "../.tmp/bin/buf" breaking --against "$against")

stale=0
while IFS= read -r file; do
  if ! diff -q "$fresh/$file" "$proto/$file" >/dev/null 2>&1; then
    echo "stale: proto/$file" >&2
    stale=1
  fi
done < <({ cd "$fresh" && find . -type f; cd "$proto" && find . -name '*.pb.go' -o -name '*.pb.gw.go' -o -name 'openapi.json'; } | sort -u)
if ((stale)); then
  echo "run proto/generate.sh and commit what it writes" >&2
  exit 1
fi
