#!/usr/bin/env bash
# Puts beside the binary what the images need too:
#   deploy/image-files.sh DIR    licenses, certificates, and a folder for the data of the standalone image
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly out="${1:?usage: deploy/image-files.sh DIR}"
deploy/licenses.sh "$out/licenses"
cp LICENSE deploy/NOTICE "$out/licenses/"
mkdir -p "$out/state/sidebus"
chmod 0700 "$out/state/sidebus"

# Debian and Alpine, Fedora, macOS.
for certificates in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem; do
  if [[ -s "$certificates" ]]; then
    cp "$certificates" "$out/ca-certificates.crt"
    chmod 0644 "$out/ca-certificates.crt"
    exit 0
  fi
done
echo "deploy/image-files.sh: no certificates on this machine; install ca-certificates" >&2
exit 1
