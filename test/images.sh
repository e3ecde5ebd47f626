#!/usr/bin/env bash
# Builds both images with buildah, without a Docker daemon and without pulling a base, starts each as its configuration
# says, and sends a message through it:
#   test/images.sh CONTEXT    CONTEXT is what `make image-files` writes
# Images and containers are below .tmp/images and are removed at the end. Containers run in namespaces of their own, so
# they may listen on the default ports, and nothing that they started or mounted stays.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly context="${1:?usage: test/images.sh CONTEXT}"
if [[ -z "${SIDEBUS_IMAGES_ALONE:-}" ]]; then
  alone=(unshare --net --pid --mount --fork --kill-child --mount-proc env SIDEBUS_IMAGES_ALONE=1 "$0" "$@")
  if ((EUID == 0)); then exec "${alone[@]}"; fi
  exec sudo -n --preserve-env=VERSION,COMMIT "${alone[@]}"
fi

readonly work="$PWD/.tmp/images"
rm -rf "$work"
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT
ip link set lo up
printf '[storage]\ndriver = "vfs"\ngraphroot = "%s"\nrunroot = "%s"\n' "$work/store" "$work/run" >"$work/storage.conf"
export CONTAINERS_STORAGE_CONF="$work/storage.conf" BUILDAH_ISOLATION=chroot
export DOCKER_HOST=unix:///nowhere # a Docker daemon may run here; this tests buildah
# Go is not on root's PATH everywhere.
GOARCH="$(dpkg --print-architecture 2>/dev/null || go env GOARCH)"
export GOARCH

fail() {
  echo "test/images.sh: $*" >&2
  if [[ -s "$work/log" ]]; then tail -n 20 "$work/log" >&2; fi
  exit 1
}

# server_image makes a base for the standalone image: this machine's server with its libraries, and nothing else.
server_image() {
  local server root file
  server="$(command -v valkey-server || command -v redis-server)"
  root="$work/base"
  while read -r file; do
    mkdir -p "$root$(dirname "$file")"
    cp -L "$file" "$root$file"
  done < <(echo "$server" && ldd "$server" | grep -o '/[^ ]*')
  printf 'FROM scratch\nCOPY . /\nENV PATH=%s\n' "$(dirname "$server")" >"$work/Dockerfile.base"
  buildah build --quiet --file "$work/Dockerfile.base" --tag sidebus-test-base "$root" >/dev/null
}

configuration() { # of the container, as a JSON path
  buildah inspect --format "{{.Docker.Config.$1}}" "$container"
}

# start runs entrypoint and command of an image, with settings in front: start IMAGE [NAME=VALUE ...]
start() {
  local image="$1" settings=()
  shift
  for setting in "$@"; do settings+=(--env "$setting"); done
  container="$(buildah from --pull-never "$image")"
  read -ra command <<<"$(configuration Entrypoint | tr -d '[]') $(configuration Cmd | tr -d '[]')"
  buildah run "${settings[@]}" "$container" "${command[@]}" >"$work/log" 2>&1 &
  running=$!
  # Two runs that begin at the same time make the same folders, and one of them fails.
  for _ in {1..100}; do
    if [[ -s "$work/log" ]] || ! kill -0 "$running" 2>/dev/null; then return; fi
    sleep 0.1
  done
}

inside() { # runs a command in the running container
  buildah run "$container" "$@"
}

# pass_a_message checks the user, the health check and the APIs of the container that runs.
pass_a_message() {
  local api=http://127.0.0.1:7420/v1/queues/orders answer
  inside /sidebus wait --timeout 20s >/dev/null || fail "it does not become ready"
  read -ra health <<<"$(configuration Healthcheck.Test | tr -d '[]')"
  [[ "${health[0]}" == CMD ]] || fail "the health check is ${health[*]}"
  inside "${health[@]:1}" >/dev/null || fail "its health check fails"
  [[ "$(ps -o uid= -C sidebus | sort -u | tr -d ' ')" == 65532 ]] || fail "it runs as user $(ps -o uid= -C sidebus)"
  curl --fail-with-body -sS -X PUT "$api" -d '{}' >/dev/null
  curl --fail-with-body -sS "$api/messages:send" -d '{"messages":[{"text":"hello"}]}' >/dev/null
  answer="$(curl --fail-with-body -sS "$api/messages:receive" -d '{"mode":"RECEIVE_AND_DELETE","maxWait":"5s"}')"
  [[ "$answer" == *'"text":"hello"'* ]] || fail "received $answer"
}

stop() { # as Docker and Kubernetes do; a clean stop is a drained one
  kill -TERM "$(ps -o pid= -C sidebus | tr -d ' ')"
  wait "$running" || fail "it stopped with code $?"
  grep -q stopped "$work/log" || fail "its log does not end with its stop"
  buildah rm "$container" >/dev/null
}

server_image
BASE=localhost/sidebus-test-base deploy/image.sh sidebus:test "$context" >"$work/log" 2>&1 || fail "the images cannot be built"

echo "the sidecar image without a store names what to set"
for _ in 1 2 3; do # buildah sometimes ends before it has passed on what the container wrote last
  start sidebus:test
  if wait "$running"; then fail "it starts without a store"; fi
  buildah rm "$container" >/dev/null
  if grep -q SIDEBUS_STORE "$work/log"; then break; fi
done
grep -q SIDEBUS_STORE "$work/log" || fail "it does not name SIDEBUS_STORE"

echo "the sidecar image with a Redis sends and receives"
"$(command -v valkey-server || command -v redis-server)" --save '' --maxmemory-policy noeviction >"$work/redis.log" &
start sidebus:test SIDEBUS_STORE=redis://127.0.0.1:6379
pass_a_message
root="$(buildah mount "$container")"
[[ "$(find "$root" -maxdepth 1 -type f)" == "$root/sidebus" ]] || fail "it has more than the binary: $(ls "$root")"
[[ -s "$root/etc/ssl/certs/ca-certificates.crt" && -s "$root/licenses/NOTICE" ]] || fail "it lacks certificates or licenses"
stop

echo "the standalone image sends and receives with its own server"
start sidebus:test-standalone
pass_a_message
stop
echo "both images work"
