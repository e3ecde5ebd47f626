#!/usr/bin/env bash
# Prints real events, one a line: time, thing and event, separated by tabs, in order of time. It takes logs of this machine until
# there are enough things:
#   - what the package manager did (/var/log/dpkg.log): the thing is a package
#   - the history of this repository: the thing is a file
#   - a run of this repository's tests, which Go reports event by event: the thing is a test
# and says on stderr what it took.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
least="${1:-1000}"
dir="$(mktemp -d)"
trap 'rm -rf "$dir"' EXIT

took() { # WHAT: says how much of it there is, and reports whether there is enough by now
  local things
  things="$(cut -f 2 "$dir/events" | sort -u | wc -l)"
  echo "$1: $(wc -l <"$dir/events") events of $things things so far" >&2
  ((things >= least))
}

enough() {
  # 2025-06-24 14:36:25 status unpacked libsystemd0:amd64 252.38, or: 2025-06-24 14:36:25 upgrade libsystemd0:amd64 252.36 252.38
  cat /var/log/dpkg.log 2>/dev/null | awk -v OFS='\t' '
    $3 == "status" { print $1 " " $2, $5, $3 " " $4 " " $6; next }
    $3 != "startup" && NF > 4 { print $1 " " $2, $4, $3 " " $5 " " $6 }' >>"$dir/events"
  took "package manager" && return

  git log --reverse --date='format:%Y-%m-%d %H:%M:%S' --format='commit %ad %h' --name-status 2>/dev/null | awk -v OFS='\t' '
    /^commit / { at = $2 " " $3; commit = $4; next }
    NF > 1 && length($NF) <= 128 { print at, $NF, $1 " in " commit }' >>"$dir/events"
  took "history" && return

  go test -json ./semantics/memstore | sed -n \
    's/^{"Time":"\([^"T]*\)T\([^".]*\)[^"]*","Action":"\([^"]*\)".*"Test":"\([^"]\{1,120\}\)".*/\1 \2\t\4\t\3/p' >>"$dir/events"
  took "tests"
}

enough || { echo "there are no $least things in the logs of this machine" >&2; exit 1; }
sort --stable --field-separator=$'\t' --key=1,1 "$dir/events"
