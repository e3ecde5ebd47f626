#!/usr/bin/env bash
# Collects the license of each module that is linked into sidebus, and of Go itself, for archives and packages:
#   deploy/licenses.sh DIR    DIR is emptied first
# Fails if a module has no license file.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly out="${1:?usage: deploy/licenses.sh DIR}"
rm -rf "$out"
mkdir -p "$out/go"
cp "$(go env GOROOT)/LICENSE" "$out/go/"

# go list -deps answers for one platform at a time. Our own second module, proto, is under the license of the whole.
for os in linux darwin; do
  GOOS="$os" go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}' ./cmd/sidebus
done | sort -u | grep -v '^github.com/sidebus/' | while read -r module dir; do
  files=()
  for file in "$dir"/{LICENSE,LICENCE,COPYING,NOTICE,PATENTS}*; do
    if [[ -f "$file" ]]; then files+=("$file"); fi
  done
  if ((${#files[@]} == 0)); then
    echo "deploy/licenses.sh: $module has no license file" >&2
    exit 1
  fi
  mkdir -p "$out/$module"
  cp "${files[@]}" "$out/$module/"
  chmod u+w "$out/$module"/*
done
