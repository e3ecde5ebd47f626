#!/usr/bin/env bash
# Three callers with different rights, each known in another way. run.sh starts it in a folder with the policy, the token and
# the certificates; HTTPS is the address of the HTTP API, SIDEBUS_GRPC_ADDR that of the gRPC API.
set -euo pipefail

expect() { # WHAT WANT GOT
  if [[ "$3" != *"$2"* ]]; then
    echo "$1: want $2, got $3" >&2
    exit 1
  fi
  echo "$1: $2"
}
# call METHOD PATH [ARGUMENTS OF CURL...]: the status of a call of the HTTP API
call() { curl -sS --max-time 20 --cacert ca.pem -o answer -w '%{http_code}' -X "$1" "${@:3}" "$HTTPS/v1/$2"; }
as_operator=(-H "Authorization: Bearer $(cat operator.token)")
as_billing=(--cert billing.pem --key billing.key)
as_stranger=(--cert stranger.pem --key stranger.key)

# The operator proves who it is with a token, on each API.
sidebus entity create orders --token-file operator.token >/dev/null
sidebus entity create billing-eu --token-file operator.token >/dev/null
expect 'the operator lists the queues' 200 "$(call GET queues "${as_operator[@]}")"
expect 'a caller without a token lists the queues' 401 "$(call GET queues)"
expect 'a wrong token' 401 "$(call GET queues -H 'Authorization: Bearer wrong-wrong-wrong-wrong')"

# This process needs no token at the unix socket: the kernel says which user runs it.
sidebus send orders 'two teas' >/dev/null
expect 'orders-app receives' 'two teas' "$(sidebus receive orders --complete)"
expect 'orders-app deletes a queue' PERMISSION_DENIED "$(sidebus entity delete orders --yes 2>&1 || true)"

# Billing has a certificate, and may receive from what its pattern matches.
expect 'billing peeks' 200 "$(call POST queues/billing-eu/messages:peek "${as_billing[@]}" -d '{}')"
expect 'billing sends' 403 "$(call POST queues/billing-eu/messages:send "${as_billing[@]}" -d '{"messages":[{"text":"x"}]}')"
expect 'billing peeks elsewhere' 403 "$(call POST queues/orders/messages:peek "${as_billing[@]}" -d '{}')"
expect 'a certificate that the policy does not have' 401 "$(call POST queues/billing-eu/messages:peek "${as_stranger[@]}" -d '{}')"

# The policy is read again while the sidecar runs. A broken one changes nothing.
peek() { call POST queues/billing-eu/messages:peek "${as_billing[@]}" -d '{}'; }
until_is() { # WHAT COMMAND...: repeats the command for 20 s, until it succeeds
  for _ in {1..100}; do
    if "${@:2}"; then
      echo "$1"
      return
    fi
    sleep 0.2
  done
  echo "$1: not within 20 s" >&2
  exit 1
}
cp policy.yaml policy.good
echo 'identities: [' >policy.yaml
is_broken() { [[ "$(peek)" == 200 ]] && grep -q 'the policy cannot be read again' log; }
until_is 'with a broken policy, that of before is in force' is_broken
sed 's/CN=billing/CN=another/' policy.good >policy.yaml
is_refused() { [[ "$(peek)" == 401 ]]; }
until_is 'billing is not in the policy any more' is_refused

# Who did what, and who was refused, is in the log.
audit() { grep -c "msg=audit .*$1" log || true; }
expect 'lines of the audit about the new queue' 1 "$(audit 'method=Admin.CreateQueue .* code=OK entity=queues/orders caller="orders-app operator"')"
expect 'lines about what billing sent' 1 "$(audit 'method=Messages.Send .* code=PERMISSION_DENIED entity=queues/billing-eu caller=billing')"
expect 'lines of the log with the token' 0 "$(grep -cF "$(cat operator.token)" log || true)"
