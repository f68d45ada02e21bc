#!/bin/sh
# build.sh [target ...]: configures and builds the release preset, the Python package included.
set -eu
cd "$(dirname "$0")/.."

set -- ${1:+--target "$@"}
launcher=
if command -v ccache >/dev/null; then
  launcher=-DCMAKE_CXX_COMPILER_LAUNCHER=ccache
  # What is compiled here need not be compiled again in another copy of this tree, a wheel's for one.
  export CCACHE_BASEDIR="${CCACHE_BASEDIR:-$PWD}"
fi

echo "build: configuring build/release"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086  # may be empty
if ! cmake --preset release -DHOCKET_PYTHON=ON $launcher \
  -DPython_EXECUTABLE="$PWD/.venv/bin/python" >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
cmake --build --preset release "$@"
