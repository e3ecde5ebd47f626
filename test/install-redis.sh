#!/usr/bin/env bash
# Makes sure that a redis-server (or valkey-server) of at least version 7.0 is on PATH; installs the system's package
# when there is none. Prints nothing when all is well, and exits 1 with the reason when it can do nothing.
set -euo pipefail

readonly least=7

fit() { # is there a server that is new enough?
  local program version
  for program in redis-server valkey-server; do
    command -v "$program" >/dev/null || continue
    version="$("$program" --version | sed -n 's/.*v=\([0-9]*\)\..*/\1/p')"
    if ((${version:-0} >= least)); then return 0; fi
    echo "$program on PATH is version ${version:-unknown}; at least $least.0 is needed" >&2
  done
  return 1
}

as_root() {
  if ((EUID == 0)); then
    "$@"
  elif [[ -t 0 ]]; then
    sudo "$@"
  else
    sudo -n "$@" # nobody is there to type a password
  fi
}

install_package() {
  if command -v brew >/dev/null; then
    brew install redis
  elif command -v apt-get >/dev/null && { ((EUID == 0)) || command -v sudo >/dev/null; }; then
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends redis-server
  else
    return 1
  fi
}

if fit; then exit 0; fi
echo "installing redis-server with the system's package manager" >&2
if install_package >&2 && fit; then exit 0; fi
echo "No redis-server of version $least.0 or later could be installed here. Install it by hand: the package is" \
  "redis-server (Debian, Ubuntu), redis (Fedora, Alpine, brew) or valkey." >&2
exit 1
