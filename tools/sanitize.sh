#!/bin/sh
# sanitize.sh [asan|tsan ...]: builds the sanitizer presets, both by default, and runs the unit and
# the conformance tests under them.
set -eu
cd "$(dirname "$0")/.."
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

for preset in "$@"; do
  echo "sanitize: $preset"
  # shellcheck disable=SC2086  # may be empty
  cmake --preset "$preset" $launcher >/dev/null
  targets=
  for kind in unit conformance; do
    if [ -d "build/$preset/tests/$kind" ]; then targets="$targets tests/$kind/all"; fi
  done
  # shellcheck disable=SC2086  # lists of words
  cmake --build --preset "$preset" --target $targets
  for target in $targets; do
    # shellcheck disable=SC2086
    $fixed_addresses ctest --test-dir "build/$preset/${target%/all}" --output-on-failure
  done
done
echo "sanitize: $* found nothing"
