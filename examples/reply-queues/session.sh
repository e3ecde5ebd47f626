#!/usr/bin/env bash
# What run.sh shows, with the address of a sidecar in HTTP and GRPC:
#   session.sh WORKER
set -euo pipefail
worker="$1"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
count=200
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true' EXIT

call() { curl --fail-with-body -sS --max-time 20 --unix-socket "$HTTP" "http://sidecar/v1/queues$1" "${@:2}"; }
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }
expect() { # WHAT WANT GOT
  if [[ "$3" != *"$2"* ]]; then
    echo "$1: want $2, got $3" >&2
    exit 1
  fi
  echo "$1: $2"
}
await() { # WHAT COMMAND...: at most half a minute
  for ((i = 0; i < 600; i++)); do
    if "${@:2}"; then return; fi
    sleep 0.05
  done
  echo "waited in vain: $1" >&2
  exit 1
}
start() { # CLIENT
  "$here/client.py" "$count" "$SCRATCH/$1" &
  pids+=("$!")
  client=$!
}
finish() { # CLIENT PID: it ends by itself, with all answers, and leaves nothing
  wait "$2"
  expect "client $1, answers to $count questions, all its own" "$count" "$(($(wc -l <"$SCRATCH/$1") - 1))"
}
has_answers() { (($(wc -l <"$SCRATCH/$1") > $2)); } 2>/dev/null
is_done() { [[ "$(call /weekdays/runtime)" == *'"totalMessageCount":"0"'* ]]; }
has_queues() { [[ "$(queues)" == "$1" ]]; }
queues() { call '?namePrefix=replies-' | { grep -o '"name":"[^"]*"' || true; } | wc -l; }

call /weekdays -X PUT -d '{}' >/dev/null
"$worker" >"$SCRATCH/worker" &
served=$!
pids+=("$served")

# Three clients at the same time, each with a queue of its own. One is killed in the middle.
start one && one="$client"
start two && two="$client"
start three && three="$client"
await 'three reply queues' has_queues 3
await 'client two in the middle' has_answers two $((count / 4))
echo 'three clients ask, each with a queue of its own'
kill -9 "$two"
killed=0
wait "$two" 2>/dev/null || killed=$?
expect 'client two is killed, with exit code' 137 "$killed"
got="$(($(wc -l <"$SCRATCH/two") - 1))"
if ((got >= count)); then
  echo "client two was not killed in the middle: it had $got answers" >&2
  exit 1
fi
finish one "$one"
finish three "$three"
await 'the rest of the work' is_done

# The worker has answered its requests, and its queue has the answers.
orphan="$(head -n 1 "$SCRATCH/two")"
expect 'queues left' 1 "$(queues)"
left="$(call "/$orphan/runtime" | field totalMessageCount)"
if ((left < 1)); then
  echo 'the answers to the killed client are not in its queue' >&2
  exit 1
fi
echo "client two got $got answers; its queue holds $left that no client reads"
shown="$(call "/$orphan")"
expect 'its queue is deleted after it has been unused for' '"autoDeleteOnIdle":"300s"' "$shown"
used="$(field accessedAt <<<"$shown")"
expect 'its last use, which reading its options does not change' "$used" "$(call "/$orphan" | field accessedAt)"
echo 'it is deleted five to six minutes after that; the example does not wait for this'

# The client again is another process with another queue: it sees nothing of what came too late for the first.
start again
finish again "$client"
expect 'answers still in the queue of the killed client' "$left" "$(call "/$orphan/runtime" | field totalMessageCount)"

# A question whose client ended in order while it waited: the worker notices, and drops the answer.
gone="$(head -n 1 "$SCRATCH/one")"
call /weekdays/messages:send -d "{\"messages\":[{\"text\":\"1969-07-20\",\"replyTo\":\"$gone\"}]}" >/dev/null
await 'the question of a client that is gone' is_done
expect 'the worker reports' "no client waits at $gone" "$(cat "$SCRATCH/worker")"
expect 'requests left, including dead letters' '"totalMessageCount":"0"' "$(call /weekdays/runtime)"

trap - EXIT
kill "$served"
wait "$served" # it ends in order, with 0
