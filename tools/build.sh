#!/bin/sh
# build.sh [--no-kernels | --kernels-for ARCHITECTURE] [--no-tests] [target ...]: configures and
# builds the release preset, with the Python package.
#   --no-kernels                do not compile the GPU kernels: nvcc takes minutes for them
#   --kernels-for ARCHITECTURE  compile the GPU kernels for one GPU architecture alone, such as 90
#   --no-tests                  build neither the tests nor the libraries that only they need
set -eu
cd "$(dirname "$0")/.."

# -U removes a setting from CMake's cache, because an earlier run may have stored another value.
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
  # ccache stores paths relative to this folder. So another copy of this tree, such as a wheel's
  # build, can use the results of this build.
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
