#!/bin/sh
# build.sh [--no-kernels] [target ...]: configures and builds the release preset, the Python package
# included. --no-kernels: without those for GPUs, which take nvcc minutes.
set -eu
cd "$(dirname "$0")/.."

kernels=-UHOCKET_NVCC  # looked for anew, as this may have been run without them
if [ "${1:-}" = --no-kernels ]; then
  kernels=-DHOCKET_NVCC=OFF
  shift
fi
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
if ! cmake --preset release -DHOCKET_PYTHON=ON $kernels $launcher \
  -DPython_EXECUTABLE="$PWD/.venv/bin/python" >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
cmake --build --preset release "$@"
