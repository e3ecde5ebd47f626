#!/usr/bin/env bash
# Measures the time from the start of the sidecar to its readiness (target: at most 300 ms), Redis already up:
#   make build && test/start-time.sh [runs]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly runs="${1:-9}" admin=127.0.0.1:7922
folder="$(mktemp -d)"
redis-server --port 0 --unixsocket "$folder/s" --dir "$folder" --save "" --appendonly yes --loglevel warning >/dev/null &
redis=$!
trap 'kill "$redis"; wait "$redis" || true; rm -rf "$folder"' EXIT
until [[ -S "$folder/s" ]]; do :; done

for ((run = 0; run < runs; run++)); do
  began="$(date +%s%N)"
  bin/sidebus serve --store "unix://$folder/s" --http-addr 127.0.0.1:7920 --grpc-addr 127.0.0.1:7921 --admin-addr "$admin" 2>/dev/null &
  sidecar=$!
  until curl -fs -o /dev/null "http://$admin/readiness"; do :; done
  echo $((($(date +%s%N) - began) / 1000000))
  kill "$sidecar"
  wait "$sidecar" || true
done | sort -n | awk '{ ms[NR] = $1 } END { printf "start to ready: median %d ms, worst %d ms of %d runs\n", ms[int((NR + 1) / 2)], ms[NR], NR }'
