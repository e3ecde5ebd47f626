#!/usr/bin/env bash
# Builds both images with Docker, or with buildah where no Docker daemon runs:
#   deploy/image.sh NAME:TAG CONTEXT    CONTEXT has the binary and what deploy/image-files.sh puts beside it
# VERSION and COMMIT go into the labels, BASE replaces the base of the standalone image, and GOARCH is the processor.
set -euo pipefail

readonly image="${1:?usage: deploy/image.sh NAME:TAG CONTEXT}" context="${2:?usage: deploy/image.sh NAME:TAG CONTEXT}"
readonly file="$(dirname "${BASH_SOURCE[0]}")/Dockerfile"

if docker info --format '{{.ServerVersion}}' >/dev/null 2>&1; then
  build=(docker build)
elif command -v buildah >/dev/null; then
  build=(buildah build --format docker) # the format of OCI has no health check
else
  echo "deploy/image.sh: neither a Docker daemon nor buildah is here" >&2
  exit 1
fi

for target in sidecar standalone; do
  tag="$image"
  if [[ "$target" == standalone ]]; then tag="$image-standalone"; fi
  "${build[@]}" --file "$file" --target "$target" --tag "$tag" --platform "linux/${GOARCH:-$(go env GOARCH)}" \
    --build-arg BUILT=compiled ${BASE:+--build-arg "BASE=$BASE"} --build-arg "VERSION=${VERSION:-unreleased}" \
    --build-arg "COMMIT=${COMMIT:-unknown}" --build-arg "CREATED=$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$context"
done
