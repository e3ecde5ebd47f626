#!/usr/bin/env bash
# Makes sure that a program the tests or the examples need is on PATH, and installs the system's package when it is not:
#   test/install.sh redis     redis-server or valkey-server, at least version 7.0
#   test/install.sh python    python3, which runs the Python example
#   test/install.sh venv      python3 with the modules venv and pip, and its headers, which install clients of AMQP for a test
#   test/install.sh node      node, at least version 18, which runs the Node example
#   test/install.sh java      java and javac of a JDK, at least version 17, which run the Java example
#   test/install.sh maven     mvn, which installs the SDK of Azure Service Bus for Java for a test
#   test/install.sh npm       npm, which installs what a benchmark of other queues needs
#   test/install.sh rabbitmq  rabbitmq-server, which a benchmark compares with
#   test/install.sh buildah   buildah, at least version 1.28, which builds images without a Docker daemon
#   test/install.sh chromium  chromium or google-chrome, at least version 130, in which the console is tested
# Prints nothing when all is well, and exits 1 with the reason when it can do nothing.
set -euo pipefail

readonly what="${1:?usage: test/install.sh redis|python|venv|node|java|maven|npm|rabbitmq|buildah|chromium}" least=7 least_node=18 least_java=17 least_buildah=28 least_chromium=130
# As test/console/browser/browser.mjs looks for them.
readonly chromiums="chromium chromium-browser google-chrome google-chrome-stable"

redis_fits() { # is there a server that is new enough?
  local program version
  for program in redis-server valkey-server; do
    command -v "$program" >/dev/null || continue
    version="$("$program" --version | sed -n 's/.*v=\([0-9]*\)\..*/\1/p')"
    if ((${version:-0} >= least)); then return 0; fi
    echo "$program on PATH is version ${version:-unknown}; at least $least.0 is needed" >&2
  done
  return 1
}

# Reads v20.1.0 of node, openjdk 17.0.15 of java and javac 17.0.15.
version_fits() { # is the program of the first argument there, and its version not below the second one's?
  local version
  command -v "$1" >/dev/null || return 1
  version="$("$1" --version 2>/dev/null | sed -n '1s/^[^0-9]*\([0-9]*\).*/\1/p')"
  if ((${version:-0} >= $2)); then return 0; fi
  echo "$1 on PATH is version ${version:-unknown}; at least $2 is needed" >&2
  return 1
}

buildah_fits() { # 1.28 leaves out the stages that a target does not need
  local version
  command -v buildah >/dev/null || return 1
  version="$(buildah --version | sed -n 's/^buildah version 1\.\([0-9]*\)\..*/\1/p')"
  if ((${version:-0} >= least_buildah)); then return 0; fi
  echo "buildah on PATH is version 1.${version:-unknown}; at least 1.$least_buildah is needed" >&2
  return 1
}

chromium_fits() { # is there a browser of Chromium's that is new enough? A stub that would install a snap has no version
  local program version
  for program in $chromiums; do
    command -v "$program" >/dev/null || continue
    version="$("$program" --version 2>/dev/null | sed -n 's/^[A-Za-z ]* \([0-9]*\)\..*/\1/p')"
    if ((${version:-0} >= least_chromium)); then return 0; fi
    echo "$program on PATH is version ${version:-unknown}; at least $least_chromium is needed" >&2
  done
  return 1
}

fits() {
  case "$what" in
    redis) redis_fits ;;
    python) command -v python3 >/dev/null ;;
    venv) python3 -c "import ensurepip, os, sysconfig, venv
raise SystemExit(not os.path.exists(os.path.join(sysconfig.get_path('include'), 'Python.h')))" 2>/dev/null ;;
    node) version_fits node "$least_node" ;;
    npm) command -v npm >/dev/null ;;
    maven) command -v mvn >/dev/null ;;
    # Debian puts it where only root looks.
    rabbitmq) command -v rabbitmq-server >/dev/null || [[ -x /usr/sbin/rabbitmq-server ]] ;;
    buildah) buildah_fits ;;
    chromium) chromium_fits ;;
    java) version_fits java "$least_java" && version_fits javac "$least_java" ;;
  esac
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
    brew install "$brew"
  elif command -v apt-get >/dev/null && { ((EUID == 0)) || command -v sudo >/dev/null; }; then
    as_root apt-get update -qq
    # shellcheck disable=SC2086 # several packages
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $apt
  else
    return 1
  fi
}

case "$what" in
  redis) brew=redis apt=redis-server hint="redis-server $least.0 (Debian, Ubuntu), redis (Fedora, Alpine, brew) or valkey" ;;
  python) brew=python3 apt=python3 hint=python3 ;;
  venv) brew=python3 apt="python3-venv python3-dev" hint="python3 with venv and its headers (python3-venv and python3-dev on Debian and Ubuntu)" ;;
  node) brew=node apt=nodejs hint="Node.js $least_node or later" ;;
  java) brew=openjdk apt=default-jdk-headless hint="a JDK, version $least_java or later, with java and javac on PATH" ;;
  maven) brew=maven apt=maven hint="maven, with mvn on PATH" ;;
  npm) brew=node apt=npm hint=npm ;;
  rabbitmq) brew=rabbitmq apt=rabbitmq-server hint="rabbitmq-server 3.10 or later" ;;
  buildah) brew=buildah apt=buildah hint="buildah 1.$least_buildah or later, on Linux" ;;
  chromium) brew=chromium apt=chromium hint="chromium (Debian, Fedora, Alpine, brew) or google-chrome, version $least_chromium or later, on PATH; the packages of Ubuntu only install a snap, so take google-chrome-stable from dl.google.com/linux there" ;;
  *) echo "test/install.sh: redis, python, venv, node, java, maven, npm, rabbitmq, buildah or chromium, not $what" >&2; exit 2 ;;
esac

if fits; then exit 0; fi
echo "installing $apt with the system's package manager" >&2
if install_package >&2 && fits; then exit 0; fi
echo "$what could not be installed here. Install the package by hand: $hint." >&2
exit 1
