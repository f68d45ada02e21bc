#!/bin/sh
# sanitize.sh [--fast] [asan|tsan ...]: builds the presets of the sanitizers (default: both), and
# runs the unit and conformance tests under them. --fast runs only two kinds of tests, on few ranks:
# tests that parse bytes from other processes, and tests that share memory between threads.
set -eu
cd "$(dirname "$0")/../.."
fast=
if [ "${1:-}" = --fast ]; then fast=1; shift; fi
[ $# -gt 0 ] || set -- asan tsan

launcher=
if command -v ccache >/dev/null; then launcher=-DCMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
# If the system permits, run programs without address randomisation. GCC's thread sanitizer does not
# start on kernels that randomise more address bits than it supports.
fixed_addresses=
if setarch "$(uname -m)" -R true 2>/dev/null; then fixed_addresses="setarch $(uname -m) -R"; fi

export ASAN_OPTIONS="detect_leaks=1:strict_string_checks=1:${ASAN_OPTIONS:-}"
export UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS:-}"
export TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1:${TSAN_OPTIONS:-}"
# Keep UCX from hooking the calls that free memory. A thread makes such calls even while it ends,
# when the thread sanitizer no longer knows the thread.
export UCX_MEM_EVENTS=no

fast_units="object_codec_test object_value_test rendezvous_wire_test rendezvous_server_test
  local_point_to_point_test algorithm_ranges_test"
# Choose engines whose ranks are threads, including the GPU kernels that run on the host. Three
# ranks exercise every communication pattern and still run quickly.
fast_conformance='*local_3_*:*shm_threads_3_*:*shm_messages_3_*:*peer*_3_*'

# starts PRESET: true if the preset's programs can start. They cannot if the kernel randomises more
# address bits than the sanitizer supports and does not let this script turn it off.
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
