#!/bin/sh
# build.sh [--no-kernels | --kernels-for ARCHITECTURE] [--no-tests] [target ...]: configures and builds the
# release preset, the Python package included. The kernels for GPUs take nvcc minutes: --no-kernels leaves
# them out, --kernels-for compiles them for one architecture, such as 90. --no-tests leaves out the tests and
# the libraries that they need.
set -eu
cd "$(dirname "$0")/.."

# Both are found anew, because an earlier run may have set them.
kernels="-UHOCKET_NVCC -UHOCKET_CUDA_ARCHITECTURES"
tests=-UHOCKET_TESTS
while :; do
  case ${1:-} in
    --no-kernels) kernels=-DHOCKET_NVCC=OFF ;;
    --kernels-for)
      kernels="-UHOCKET_NVCC -DHOCKET_CUDA_ARCHITECTURES=$2"
      shift
      ;;
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
