#!/bin/sh
# wheel.sh [--arch ARCH] [--python PYTHON] [FOLDER]: makes the wheel for distribution in FOLDER
# (dist): hocket-VERSION-cp311-abi3-manylinux_2_28_ARCH.whl. It runs with Python 3.11 or later on
# every distribution with glibc 2.28 (of 2018) or later.
#
# The wheel contains the Python package, the command, and the library with its headers. If nvcc is
# installed here, the wheel contains the GPU kernels. It also contains a shim for each MPI whose
# headers are installed here.
#   --arch ARCH      this machine's architecture (default), or aarch64 on an x86_64 machine
#   --python PYTHON  makes a wheel for the version of PYTHON alone, such as python3.13t. A
#                    free-threaded Python needs such a wheel.
# docs/notes/wheel.md describes the build.
set -eu
cd "$(dirname "$0")/../.."
ARCH=$(uname -m) own= out=
while [ $# -gt 0 ]; do
  case $1 in
    --arch) ARCH=$2; shift 2 ;;
    --python) own=$2; shift 2 ;;
    -*) echo "wheel: unknown option $1; usage: tools/release/wheel.sh [--arch ARCH]" \
        "[--python PYTHON] [FOLDER]" >&2; exit 2 ;;
    *) out=$1; shift ;;
  esac
done
out=${out:-dist}
mkdir -p build "$out"
say() { echo "wheel: $*"; }
# Two builds of one commit shall give the same wheel. So all files get the time of the commit, and
# the same mode.
umask 022
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 315532800)}
export SOURCE_DATE_EPOCH

# With --python: the tag of the wheel, such as cp313t. Otherwise empty.
tag=
[ -z "$own" ] || tag=$("$own" -c 'import sys, sysconfig; print("cp%d%d" % sys.version_info[:2] +
  ("t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""))')
tools=build/manylinux/tools${tag:+-$tag}
if ! cmp -s tools/release/manylinux/requirements.txt "$tools/requirements.txt"; then
  say "installing the tools: $(grep -v '^#' tools/release/manylinux/requirements.txt | tr '\n' ' ')"
  "${own:-python3}" -m venv "$tools"
  "$tools/bin/python" -m pip install -q --disable-pip-version-check --only-binary :all: \
    -r tools/release/manylinux/requirements.txt
  cp tools/release/manylinux/requirements.txt "$tools/requirements.txt"
fi
python=$PWD/$tools/bin/python
tools/release/manylinux/prepare.sh "$ARCH" \
  "$("$python" -c 'import ziglang, os; print(os.path.dirname(ziglang.__file__))')/zig"

made=$PWD/build/manylinux/$ARCH/made${tag:+-$tag}
build=build/wheel-$ARCH${tag:+-$tag}
rm -rf "$made"
mkdir -p "$made"
# The path of this build folder is as deep as build/release, and a native build uses the same
# compiler. So ccache reuses the objects of build/release.
say "building ($build)"
if command -v ccache >/dev/null; then
  CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR="${CCACHE_BASEDIR:-$PWD}"
  CCACHE_COMPILER=$(command -v c++)
  [ "$ARCH" = "$(uname -m)" ] || CCACHE_COMPILER=$(command -v "$ARCH-linux-gnu-g++")
  export CMAKE_CXX_COMPILER_LAUNCHER CCACHE_COMPILER CCACHE_BASEDIR
fi
set -- --config-settings=build-dir="$build" \
  --config-settings=cmake.define.CMAKE_TOOLCHAIN_FILE="$PWD/build/manylinux/$ARCH/toolchain.cmake" \
  --config-settings=cmake.define.HOCKET_PORTABLE_SHIMS=ON
[ -n "$tag" ] || set -- "$@" --config-settings=wheel.py-api=cp311 \
  --config-settings=cmake.define.HOCKET_STABLE_ABI=ON
[ -z "${HOCKET_NVCC:-}" ] || set -- "$@" --config-settings=cmake.define.HOCKET_NVCC="$HOCKET_NVCC"
"$python" -m pip wheel --no-build-isolation --no-deps --disable-pip-version-check -w "$made" . "$@" \
  >"$made/log" 2>&1 || { tail -60 "$made/log" >&2; exit 1; }

say "packing"
if [ -z "$tag" ]; then
  # The nanobind runtime is a separate package, so the metadata must require it. A wheel for one
  # version of Python does not need this package.
  "$tools/bin/wheel" unpack -d "$made/tree" "$made"/hocket-*.whl >/dev/null
  for metadata in "$made"/tree/*/hocket-*.dist-info/METADATA; do
    sed -i '0,/^Requires-Dist:/s//Requires-Dist: nanobind-backend>=1,<2\n&/' "$metadata"
  done
  rm "$made"/hocket-*.whl
  "$tools/bin/wheel" pack -d "$made" "$made"/tree/hocket-* >/dev/null
fi
"$tools/bin/wheel" tags --remove --platform-tag "manylinux_2_28_$ARCH" "$made"/hocket-*.whl >/dev/null
mv "$made"/hocket-*.whl "$out/"
wheel=$(ls -t "$out"/hocket-*"$ARCH".whl | head -1)
# The tag states the oldest glibc that the toolchain promises to support. auditwheel examines the
# files, and may find that they also run on older systems. A newer requirement is an error.
if [ "$ARCH" = "$(uname -m)" ]; then
  "$tools/bin/auditwheel" show "$wheel" >"$made/audit"
  reached=$(tr '\n' ' ' <"$made/audit" | sed -n 's/.*platform tag: "manylinux_2_\([0-9]*\)_.*/\1/p')
  say "auditwheel: manylinux_2_${reached:-?}_$ARCH"
  [ "${reached:-99}" -le 28 ] || { cat "$made/audit" >&2; exit 1; }
fi
say "made $wheel"
