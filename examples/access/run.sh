#!/usr/bin/env bash
# Runs the session with a sidecar of its own, whose HTTP API is served over TLS and whose gRPC API at a unix socket.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
make --silent -C "$root" build

dir="$(mktemp -d)"
sidecar=
finish() {
  local code=$?
  if [[ -n "$sidecar" ]]; then
    kill "$sidecar" 2>/dev/null || true
    wait "$sidecar" || code=$?
  fi
  ((code == 0)) || tail -n 20 "$dir/log" >&2
  rm -rf "$dir"
  exit "$code"
}
trap finish EXIT

# An authority, and what it signs: certificates of the sidecar and of two clients. They last for a day.
cd "$dir"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=authority -keyout ca.key -out ca.pem 2>/dev/null
for name in sidecar billing stranger; do
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$name" -keyout "$name.key" -out "$name.csr" 2>/dev/null
  openssl x509 -req -in "$name.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 1 -extfile <(echo subjectAltName=IP:127.0.0.1) -out "$name.pem" 2>/dev/null
done
(umask 077 && openssl rand -base64 24 >operator.token)
sed "s/UID\]/$(id -u)]/" "$here/policy.yaml" >policy.yaml

env -i PATH="$PATH" "$root/bin/sidebus" serve --store memory --policy-file policy.yaml --log-format text \
  --grpc-addr "unix://$dir/grpc" --http-addr 127.0.0.1:0 --admin-addr "unix://$dir/admin" \
  --tls-cert-file sidecar.pem --tls-key-file sidecar.key --tls-client-ca-file ca.pem 2>log &
sidecar=$!
"$root/bin/sidebus" wait --admin-addr "unix://$dir/admin"
export SIDEBUS_GRPC_ADDR="unix://$dir/grpc"
HTTPS="https://$(sed -n 's/.*Sidebus is listening.* http=\([^ ]*\).*/\1/p' log)" PATH="$root/bin:$PATH" "$here/session.sh"
