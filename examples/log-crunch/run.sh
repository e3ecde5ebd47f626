#!/usr/bin/env bash
# Runs the experiment with a file of at least 100,000 lines: the one given, else the system's word list, which is
# installed (Debian, Ubuntu) when it is absent.
#   examples/log-crunch/run.sh [FILE]
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
file="${1:-/usr/share/dict/words}"

if [[ ! -r "$file" && $# -eq 0 ]]; then
  echo "installing the word list wamerican" >&2
  as_root=()
  if ((EUID != 0)); then as_root=(sudo); fi
  "${as_root[@]}" apt-get update -qq >&2
  "${as_root[@]}" apt-get install -y -qq --no-install-recommends wamerican >&2
fi
[[ -r "$file" ]] || { echo "cannot read $file; name a file of at least 100,000 lines" >&2; exit 1; }

"$root/test/install.sh" redis
make --silent -C "$root" build
(cd "$root" && go build -o .tmp/log-crunch ./examples/log-crunch)
SIDEBUS="$root/bin/sidebus" exec "$root/.tmp/log-crunch" run "$file"
