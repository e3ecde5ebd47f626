#!/usr/bin/env bash
# Prints how much Redis memory a waiting message takes: 10,000 messages with a body of 1 KiB each, used_memory after minus before.
#   make build && test/memory-per-message.sh [stream-node-max-bytes]
# It starts a Redis of its own without persistence. Redis frees what clients used for their requests within seconds, so each figure
# is read after a pause.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
node_bytes=${1:-4096}
dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$dir"' EXIT

redis-server --port 0 --unixsocket "$dir/redis" --save '' --appendonly no --stream-node-max-bytes "$node_bytes" >/dev/null &
until redis-cli -s "$dir/redis" ping >/dev/null 2>&1; do sleep 0.1; done
bin/sidebus serve --store "unix://$dir/redis" --http-addr "unix://$dir/http" --grpc-addr "unix://$dir/grpc" \
  --admin-addr "unix://$dir/admin" 2>"$dir/log" &
bin/sidebus wait --admin-addr "unix://$dir/admin"

body=$(head -c 1024 /dev/zero | tr '\0' x)
for _ in $(seq 10000); do echo "$body"; done >"$dir/10000"
head -n 100 "$dir/10000" >"$dir/100"

sidebus() { bin/sidebus "$@" --grpc-addr "unix://$dir/grpc" >/dev/null 2>&1; }
used() {
  sleep 6
  redis-cli -s "$dir/redis" info memory | sed -n 's/^used_memory:\([0-9]*\).*/\1/p'
}
measure() { # what, number of messages or entities, command
  local what=$1 number=$2 before
  shift 2
  before=$(used)
  "$@"
  echo "$what: $((($(used) - before) / number)) bytes"
}
sessions() {
  for i in $(seq 100); do sidebus send steps --session "order-$i" --lines --file "$dir/100"; done
}
own_sessions() { # a session for each message
  for batch in $(seq 0 99); do
    for i in $(seq 0 99); do echo "{\"sessionId\":\"order-$((batch * 100 + i))\",\"text\":\"$body\"}"; done |
      paste -sd, | sed 's/.*/{"messages":[&]}/' |
      curl -sS --fail-with-body --unix-socket "$dir/http" http://localhost/v1/queues/visits/messages:send -d @- >/dev/null
  done
}
queues() {
  for i in $(seq 1000); do echo "- name: empty-$i"; done | sed '1i queues:' >"$dir/entities.yaml"
  sidebus entity apply -f "$dir/entities.yaml"
}

redis-cli -s "$dir/redis" info server | sed -n 's/^redis_version:\([0-9.]*\).*/redis \1/p'
sidebus entity create jobs
measure "a message of a queue" 10000 sidebus send jobs --lines --file "$dir/10000"
sidebus purge jobs --yes

sidebus entity create steps --set requiresSession=true
measure "a message of a queue with 100 sessions" 10000 sessions
sidebus purge steps --yes

sidebus entity create visits --set requiresSession=true
measure "a message of a queue with 10,000 sessions" 10000 own_sessions
sidebus purge visits --yes

sidebus entity create topics/news
for i in 1 2 3 4 5; do sidebus entity create "topics/news/subscriptions/s$i"; done
measure "a message of a topic with 5 subscriptions" 10000 sidebus send topics/news --lines --file "$dir/10000"
for i in 1 2 3 4 5; do sidebus purge "topics/news/subscriptions/s$i" --yes; done

sidebus entity create payments --set requiresDuplicateDetection=true
before=$(used)
measure "a message of a queue with duplicate detection" 10000 sidebus send payments --lines --file "$dir/10000"
sidebus purge payments --yes
echo "what duplicate detection keeps of it: $((($(used) - before) / 10000)) bytes"

measure "an empty queue" 1000 queues
