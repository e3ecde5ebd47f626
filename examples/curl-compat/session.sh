#!/usr/bin/env bash
# The REST API of Service Bus with curl and nothing else. It speaks to the sidecar at SIDEBUS, http://127.0.0.1:7420 unless it is set, or
# over the socket that HTTP names:
#   examples/curl-compat/session.sh
# It makes the queue "curl-orders" and the topic "curl-news", leaves both empty, and fails when something is not as it says.
set -euo pipefail
base="${SIDEBUS:-http://127.0.0.1:7420}"
answer="$(mktemp -d)"
trap 'rm -rf "$answer"' EXIT

curl() { command curl -sS --max-time 20 ${HTTP:+--unix-socket "$HTTP"} "$@"; }
# call METHOD PATH [ARGUMENTS OF CURL...]: the body goes to $answer/body, the headers to $answer/headers, the status to $status
call() { status="$(curl -X "$1" -o "$answer/body" -D "$answer/headers" -w '%{http_code}' "${@:3}" "$base/$2")"; }
header() { sed -n "s/^$1: \(.*[^[:cntrl:]]\)[[:cntrl:]]*$/\1/Ip" "$answer/headers"; }
expect() { # WHAT WANT GOT
  if [[ "$3" != *"$2"* ]]; then
    echo "$1: want $2, got $3" >&2
    cat "$answer/headers" "$answer/body" >&2
    exit 1
  fi
  echo "$1: $2"
}

# Entities are made with the native API.
curl --fail-with-body -o /dev/null -X PUT "$base/v1/queues/curl-orders" -d '{"maxDeliveryCount":2}'
curl --fail-with-body -o /dev/null -X PUT "$base/v1/topics/curl-news" -d '{}'
curl --fail-with-body -o /dev/null -X PUT "$base/v1/topics/curl-news/subscriptions/all" -d '{}'

# Send: the body is the message, BrokerProperties what the broker looks at, other headers are application properties.
call POST curl-orders/messages -H 'BrokerProperties: {"MessageId":"m-1","Label":"order","TimeToLive":600}' \
  -H 'Content-Type: text/plain' -H 'customer: "Ada"' -H 'amount: 42' --data-binary 'two teas'
expect 'send' 201 "$status"

# Receive under lock: the message is ours until its lock ends. Location is the address of the lock.
call POST 'curl-orders/messages/head?timeout=5'
expect 'receive' 201 "$status"
expect 'its body' 'two teas' "$(cat "$answer/body")"
expect 'its label' '"Label":"order"' "$(header BrokerProperties)"
expect 'its delivery count' '"DeliveryCount":1' "$(header BrokerProperties)"
expect 'a string property' '"Ada"' "$(header customer)"
expect 'a number property' '42' "$(header amount)"
lock="$(header Location)" && lock="${lock#http://*/}"

# Renew the lock, give the message back, receive it again, and complete it.
call POST "$lock"
expect 'renew' 200 "$status"
call PUT "$lock"
expect 'unlock' 200 "$status"
call DELETE "$lock"
expect 'the lock is lost' 404 "$status"
call POST 'curl-orders/messages/head?timeout=5'
expect 'it is delivered again' '"DeliveryCount":2' "$(header BrokerProperties)"
lock="$(header Location)" && lock="${lock#http://*/}"

# Given back a second time it goes where messages go that fail too often: the dead-letter queue, which is read by its path.
call PUT "$lock"
call POST 'curl-orders/messages/head?timeout=0'
expect 'nothing is left' 204 "$status"
call DELETE 'curl-orders/$DeadLetterQueue/messages/head?timeout=5'
expect 'the dead letter, received and deleted' 200 "$status"
expect 'why it is there' '"MaxDeliveryCountExceeded"' "$(header DeadLetterReason)"

# Several messages in one request, all or none.
call POST curl-orders/messages -H 'Content-Type: application/vnd.microsoft.servicebus.json' \
  -d '[{"Body":"first"},{"Body":"c2Vjb25k","IsBodyBase64":true,"UserProperties":{"n":2}}]'
expect 'a batch' 201 "$status"
for body in first second; do
  call DELETE 'curl-orders/messages/head?timeout=5'
  expect 'one of the batch' "$body" "$(cat "$answer/body")"
done

# A topic takes messages at the same kind of path; a subscription is received from like a queue.
call POST curl-news/messages -d 'extra, extra'
expect 'send to a topic' 201 "$status"
call POST 'curl-news/subscriptions/all/messages/head?timeout=5'
expect 'receive from a subscription' 'extra, extra' "$(cat "$answer/body")"
lock="$(header Location)" && lock="${lock#http://*/}"
call DELETE "$lock"
expect 'complete' 200 "$status"

# What goes wrong is a status, and XML.
call POST no-such-queue/messages -d x
expect 'an entity that does not exist' 410 "$status"
expect 'the reason' ENTITY_NOT_FOUND "$(header Sidebus-Error)"
expect 'the body' '<Code>410</Code>' "$(cat "$answer/body")"
