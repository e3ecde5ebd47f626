#!/usr/bin/env bash
# Generates the Go code and the OpenAPI document from the .proto files.
#   proto/generate.sh [DIR]    DIR: where to write, default proto/
# The tools are installed into .tmp/bin at the root of the repository, once for each pinned version.
set -euo pipefail

proto="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
bin="$(dirname "$proto")/.tmp/bin"
out="${1:-$proto}"

# Runtime and plugin versions go together: see go.mod. buf is the newest whose dependencies the Go module proxy has.
tools=(
  github.com/bufbuild/buf/cmd/buf@v1.73.0
  google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
  google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2
  github.com/grpc-ecosystem/grpc-gateway/v2/protoc-gen-grpc-gateway@v2.31.0
  github.com/grpc-ecosystem/grpc-gateway/v2/protoc-gen-openapiv2@v2.31.0
)
for tool in "${tools[@]}"; do
  name="$(basename "${tool%@*}")"
  stamp="$bin/.$name-${tool##*@}"
  if [[ ! -e "$stamp" || ! -x "$bin/$name" ]]; then
    mkdir -p "$bin"
    GOBIN="$bin" GOFLAGS=-mod=mod go install "$tool"
    rm -f "$bin/.$name"-v*
    touch "$stamp"
  fi
done

cd "$proto"
PATH="$bin:$PATH" buf generate --output "$out"
go run ./internal/finishopenapi "$out/sidebus/v1/sidebus.swagger.json" "$out/sidebus/v1/openapi.json"
