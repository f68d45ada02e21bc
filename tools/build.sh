#!/bin/sh
# build.sh [--no-kernels] [--no-tests] [target ...]: configures and builds the release preset, the Python
# package included. --no-kernels: without those for GPUs, which take nvcc minutes. --no-tests: without the
# tests and the libraries that they need.
set -eu
cd "$(dirname "$0")/.."

kernels=-UHOCKET_NVCC  # looked for anew, as this may have been run without them
tests=-UHOCKET_TESTS
while :; do
  case ${1:-} in
    --no-kernels) kernels=-DHOCKET_NVCC=OFF ;;
    --no-tests) tests=-DHOCKET_TESTS=OFF ;;
    *) break ;;
  esac
  shift
done
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
if ! cmake --preset release -DHOCKET_PYTHON=ON $kernels $tests $launcher \
  -DPython_EXECUTABLE="$PWD/.venv/bin/python" >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
cmake --build --preset release "$@"
