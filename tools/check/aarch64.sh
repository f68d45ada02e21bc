#!/bin/sh
# aarch64.sh [--fast | TEST ...]: compiles for AArch64 with Debian's cross compiler, and runs tests
# under qemu. Without arguments it runs the unit and the conformance tests. TEST names single tests.
#
# --fast is for every change. It compiles with little optimisation and runs the tests of three kinds
# of code: parsers of bytes from other processes, the inner loops, and code that shares memory
# between threads.
#
# Without the compiler or qemu, this script says so and exits with 2. With --fast it exits with 0.
#
# The libraries for AArch64 come from Debian too. apt keeps them in build/aarch64-root with a
# package database of its own, so the packages of this machine stay unchanged.
# build/aarch64-root: this machine's packages stay unchanged.
set -eu
cd "$(dirname "$0")/../.."
fast=
if [ "${1:-}" = --fast ]; then fast=1; shift; fi

say() { echo "aarch64: $*"; }
give_up() {
  say "$*"
  [ -n "$fast" ] || exit 2
  say "left out"
  exit 0
}

packages="libc6 libstdc++6 libgcc-s1 libssl-dev libfmt-dev libspdlog-dev libhwy-dev libeigen3-dev
  libgtest-dev librapidcheck-dev libcli11-dev nlohmann-json3-dev"
root=build/aarch64-root
stamp=$root/packages

# Unpacks Debian's packages without running their install scripts: these would need an AArch64
# machine, and libraries work without them.
unpack_libraries() {
  apt=$PWD/$root.apt
  rm -rf "$root" "$apt"
  mkdir -p "$root" "$apt/state/lists/partial" "$apt/cache/archives/partial"
  : >"$apt/status"
  get="apt-get -q -y -o APT::Architecture=arm64 -o APT::Architectures=arm64
    -o Dir::State=$apt/state -o Dir::State::status=$apt/status -o Dir::Cache=$apt/cache
    -o APT::Sandbox::User=root -o Acquire::Retries=3 -o Debug::NoLocking=1"
  # shellcheck disable=SC2086  # lists of words
  $get update >"$apt/log" 2>&1 &&
    $get install --no-install-recommends --download-only $packages >>"$apt/log" 2>&1 || return 1
  for package in "$apt"/cache/archives/*.deb; do
    case ${package##*/} in
      libc6-dev_* | libcrypt-dev_*) ;;  # the cross compiler has these files already
      lib* | nlohmann*) dpkg -x "$package" "$root" ;;
    esac
  done
  rm -rf "$apt"
  echo "$packages" >"$stamp"
}

tools/setup.sh --aarch64 || true  # without the right to install, use the packages that are here
command -v aarch64-linux-gnu-g++ >/dev/null && command -v qemu-aarch64 >/dev/null ||
  give_up "there is no cross compiler or no qemu here (Debian: g++-aarch64-linux-gnu qemu-user)"
if [ "$(cat "$stamp" 2>/dev/null)" != "$packages" ]; then
  command -v apt-get >/dev/null && command -v dpkg >/dev/null ||
    give_up "there is no apt here to get AArch64's libraries by"
  say "getting AArch64's libraries into $root"
  unpack_libraries || { tail -5 "$root.apt/log"; give_up "AArch64's libraries cannot be had"; }
fi

launcher=
if command -v ccache >/dev/null; then
  launcher=-DCMAKE_CXX_COMPILER_LAUNCHER=ccache
  export CCACHE_BASEDIR="${CCACHE_BASEDIR:-$PWD}"
fi
build=build/aarch64 quickly=
if [ -n "$fast" ]; then
  build=build/aarch64-fast
  quickly="-DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O1 -DCMAKE_UNITY_BUILD=ON"
fi
say "configuring $build"
# shellcheck disable=SC2086  # may be empty
cmake --preset aarch64 -B "$build" $quickly $launcher >"$build.log" 2>&1 || { cat "$build.log" >&2; exit 1; }

if [ $# -gt 0 ]; then
  tests=$*
elif [ -n "$fast" ]; then
  tests="core_reduce_test core_small_floats_test object_codec_test object_value_test
    rendezvous_wire_test rendezvous_store_test rendezvous_server_test local_point_to_point_test
    shm_staging_test call_turn_lock_test"
else
  cmake --build "$build" --target tests/unit/all tests/conformance/all
  for kind in unit conformance; do
    ctest --test-dir "$build/tests/$kind" --output-on-failure
  done
  exit
fi
# shellcheck disable=SC2086  # a list of words
cmake --build "$build" --target $tests
for test in $tests; do
  say "$test"
  qemu-aarch64 -L "$root" "$build/bin/$test" --gtest_brief=1
done
