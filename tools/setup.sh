#!/bin/sh
# setup.sh [--peers]
#
# Installs what building and testing need and this machine lacks: Debian packages (as root, or with
# sudo) and a Python virtual environment, .venv. --peers adds the libraries that `hocket bench
# --compare` measures beside. With everything in place it takes a moment and needs no rights.
set -eu
cd "$(dirname "$0")/.."

packages="
  g++ cmake ninja-build ccache pkg-config
  libasio-dev libssl-dev libfmt-dev libspdlog-dev nlohmann-json3-dev libcli11-dev libhwloc-dev
  libhwy-dev libgtest-dev librapidcheck-dev libbenchmark-dev
  python3 python3-dev python3-venv"
for argument in "$@"; do
  case $argument in
    --peers) packages="$packages openmpi-bin libopenmpi-dev mpich libmpich-dev" ;;
    *) echo "setup: unknown argument $argument; usage: tools/setup.sh [--peers]" >&2; exit 2 ;;
  esac
done

say() { echo "setup: $*"; }

missing_packages() {
  for package in $packages; do
    state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) || state=
    [ "$state" = installed ] || printf '%s ' "$package"
  done
}

# Runs a command quietly: its output is shown only where it fails.
quietly() {
  log=$(mktemp)
  if "$@" >"$log" 2>&1; then
    rm -f "$log"
  else
    cat "$log" >&2
    rm -f "$log"
    say "failed: $*" >&2
    exit 1
  fi
}

if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
  missing=$(missing_packages)
  if [ -n "$missing" ]; then
    say "installing by apt: $missing"
    as_root=
    if [ "$(id -u)" -ne 0 ]; then
      as_root=sudo
      if ! command -v sudo >/dev/null; then
        say "this is neither root nor is there sudo; as root: apt-get install $missing" >&2
        exit 1
      fi
    fi
    apt_get="$as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Acquire::Retries=3"
    # shellcheck disable=SC2086  # lists of words
    quietly $apt_get update
    # shellcheck disable=SC2086
    quietly $apt_get install --no-install-recommends $missing
  fi
else
  # shellcheck disable=SC2086  # a list of words
  say "no apt here; these Debian packages, or their like, must be in place:" $packages
fi

stamp=.venv/requirements.txt
if ! [ -x .venv/bin/python ] || ! cmp -s tools/requirements.txt "$stamp"; then
  say "making the Python environment .venv"
  quietly python3 -m venv .venv
  quietly .venv/bin/python -m pip install --disable-pip-version-check -r tools/requirements.txt
  cp tools/requirements.txt "$stamp"
fi
say "everything is in place"
