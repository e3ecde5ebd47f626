#!/usr/bin/env bash
# Prints the path of a server of Debian 13, which the tests run on instead of the system's own:
#   SIDEBUS_TEST_SERVER="$(test/servers.sh redis)" go test ./redisstore      redis-server 8.0
#   SIDEBUS_TEST_SERVER="$(test/servers.sh valkey)" go test ./redisstore     valkey-server 8.1
# The first call makes a folder with Debian 13 below .tmp, which takes a minute and needs root and Debian's archive. The
# servers run by the libraries in that folder. Exits 1 with the reason when there is no such server in the end.
set -euo pipefail

readonly what="${1:?usage: test/servers.sh redis|valkey}" suite=trixie mirror=http://deb.debian.org/debian
cd "$(dirname "$0")/.."
readonly root="$PWD/.tmp/$suite"

case "$what" in
  redis) want=8.0 ;;
  valkey) want=8.1 ;;
  *) echo "test/servers.sh: redis or valkey, not $what" >&2; exit 2 ;;
esac

as_root() {
  if ((EUID == 0)); then "$@"; else sudo -n "$@"; fi
}

make_root() {
  if ! command -v debootstrap >/dev/null; then
    as_root apt-get update -qq && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap
  fi
  rm -rf "$root.part"
  # Built by another name, so that a folder of that name is whole.
  as_root debootstrap --variant=minbase --include=redis-server,valkey-server "$suite" "$root.part" "$mirror"
  as_root chmod -R a+rX "$root.part/usr/bin" "$root.part/usr/lib"
  mv "$root.part" "$root"
}

if [[ ! -d "$root" ]]; then
  mkdir -p .tmp
  if ! make_root >.tmp/servers.log 2>&1; then
    tail -n 3 .tmp/servers.log >&2
    echo "test/servers.sh: Debian 13 cannot be put into $root; .tmp/servers.log says why" >&2
    exit 1
  fi
fi

loader="$(find "$root/usr/lib" -name 'ld-linux*.so*' | head -n 1)"
program="$root.bin/$what-server"
mkdir -p "$root.bin"
cat >"$program" <<SERVER
#!/bin/sh
exec "$loader" --library-path "$(dirname "$loader"):$root/usr/lib" "$root/usr/bin/$what-server" "\$@"
SERVER
chmod +x "$program"
version="$("$program" --version | sed -n 's/.*v=\([0-9]*\.[0-9]*\)\..*/\1/p')"
if [[ "$version" != "$want" ]]; then
  echo "test/servers.sh: $what-server of Debian 13 is version ${version:-unknown}, and these tests are for $want" >&2
  exit 1
fi
echo "$program"
