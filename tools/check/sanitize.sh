#!/bin/sh
# sanitize.sh [--fast] [asan|tsan ...]: builds the sanitizer presets, both by default, and runs the
# unit and the conformance tests under them. --fast: only tests that parse bytes of others or share memory
# between threads, on few ranks.
set -eu
cd "$(dirname "$0")/../.."
fast=
if [ "${1:-}" = --fast ]; then fast=1; shift; fi
[ $# -gt 0 ] || set -- asan tsan

launcher=
if command -v ccache >/dev/null; then launcher=-DCMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
# Runs a command without address randomisation, where that is allowed: GCC's thread sanitizer does
# not start on kernels that randomise more bits than it knows.
fixed_addresses=
if setarch "$(uname -m)" -R true 2>/dev/null; then fixed_addresses="setarch $(uname -m) -R"; fi

export ASAN_OPTIONS="detect_leaks=1:strict_string_checks=1:${ASAN_OPTIONS:-}"
export UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS:-}"
export TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1:${TSAN_OPTIONS:-}"
# UCX hooks the calls that give memory back, also those that threads make when they end, which is
# where the thread sanitizer no longer knows them.
export UCX_MEM_EVENTS=no

fast_units="object_codec_test object_value_test rendezvous_wire_test rendezvous_server_test
  local_point_to_point_test algorithm_ranges_test"
# Engines whose ranks are threads, the GPU kernels on the host among them, three ranks: enough for every pattern, few enough to be quick.
fast_conformance='*local_3_*:*shm_threads_3_*:*shm_messages_3_*:*peer*_3_*'

# Not everywhere: where addresses are randomised more than the sanitizer knows and may not be fixed.
starts() {
  said=$($fixed_addresses "build/$1/bin/object_value_test" --gtest_list_tests 2>&1) && return 0
  case $said in *"unexpected memory mapping"*) ;; *) return 0 ;; esac
  echo "sanitize: $1 does not start on this machine, whose kernel randomises too many address bits" \
    "and lets no one fix them (sysctl vm.mmap_rnd_bits=28 helps): left out"
  return 1
}

run_fast() {
  # shellcheck disable=SC2086  # lists of words
  cmake --build --preset "$1" --target $fast_units conformance_test
  starts "$1" || return 0
  for test in $fast_units; do
    echo "sanitize: $1 $test"
    $fixed_addresses "build/$1/bin/$test" --gtest_brief=1
  done
  echo "sanitize: $1 conformance_test"
  $fixed_addresses "build/$1/bin/conformance_test" --gtest_brief=1 \
    --gtest_filter="$fast_conformance"
}

run_all() {
  cmake --build --preset "$1" --target tests/unit/all tests/conformance/all
  for kind in unit conformance; do
    $fixed_addresses ctest --test-dir "build/$1/tests/$kind" --output-on-failure
  done
}

for preset in "$@"; do
  echo "sanitize: $preset"
  # shellcheck disable=SC2086  # may be empty
  cmake --preset "$preset" $launcher >/dev/null
  if [ -n "$fast" ]; then run_fast "$preset"; else run_all "$preset"; fi
done
echo "sanitize: $* found nothing"
