#!/bin/sh
# fuzz.sh [--fast | SECONDS]: builds the fuzz targets with Clang and runs each target for SECONDS
# (600). The inputs come from tests/fuzz/corpus and from earlier runs. If an input breaks a target,
# the script fails, and the input stays in build/fuzz as crash-*, leak-*, timeout-* or oom-*.
#
# --fast is for every change: it runs all targets side by side for 12 s each. If no usable Clang is
# installed, --fast runs the stored inputs and variations of them instead, under the sanitizers of
# the default compiler.
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-600}

launcher=
if command -v ccache >/dev/null; then launcher=-DCMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
# Clang's address sanitizer sometimes fails to start on kernels that randomise many address bits.
# GCC's thread sanitizer has the same problem, see sanitize.sh.
fixed_addresses=
if setarch "$(uname -m)" -R true 2>/dev/null; then fixed_addresses="setarch $(uname -m) -R"; fi

# True if programs with Clang's fuzzer and sanitizers start on this machine in ten of ten attempts.
clang_fuzzes() {
  trial=$(mktemp -d)
  printf '%s\n' '#include <cstddef>' '#include <cstdint>' '#include <string>' \
    'extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t*, std::size_t) { return 0; }' \
    >"$trial/trial.cc"
  works=0
  clang++ -fsanitize=fuzzer,address,undefined "$trial/trial.cc" -o "$trial/trial" \
    >"$trial/log" 2>&1 || works=1
  # shellcheck disable=SC2086  # may be empty
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    [ "$works" = 1 ] || timeout 20 $fixed_addresses "$trial/trial" -runs=1 >"$trial/log" 2>&1 ||
      works=1
  done
  rm -rf "$trial"
  return "$works"
}

replay() {
  echo "fuzz: no Clang here that can fuzz (Debian: clang libclang-rt-dev); kept inputs alone"
  # shellcheck disable=SC2086  # may be empty
  cmake --preset asan $launcher >/dev/null
  cmake --build --preset asan --target replays
  $fixed_addresses ctest --test-dir build/asan --label-regex fuzz --output-on-failure
}

build() {
  # shellcheck disable=SC2086  # may be empty
  cmake --preset fuzz $launcher >/dev/null
  cmake --build --preset fuzz
}

if [ "$seconds" = --fast ]; then
  clang_fuzzes || { replay; exit; }
  build
  exec $fixed_addresses ctest --preset fuzz --parallel "$(nproc)"
fi

clang_fuzzes || { echo "fuzz: needs Clang (Debian: clang libclang-rt-dev)" >&2; exit 2; }
build
code=0
for corpus in tests/fuzz/corpus/*; do
  name=$(basename "$corpus")
  found=build/fuzz/found/$name
  mkdir -p "$found"
  echo "fuzz: $name, $seconds s"
  $fixed_addresses "build/fuzz/bin/$name" -max_total_time="$seconds" -max_len=4096 \
    -rss_limit_mb=1024 -timeout=20 -artifact_prefix=build/fuzz/ -print_final_stats=1 \
    "$found" "$corpus" >"build/fuzz/$name.log" 2>&1 ||
    { code=1; tail -20 "build/fuzz/$name.log"; }
  sed -n 's/^stat::number_of_executed_units:/fuzz:   inputs:/p' "build/fuzz/$name.log"
done
exit "$code"
