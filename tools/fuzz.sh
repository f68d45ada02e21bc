#!/bin/sh
# fuzz.sh [SECONDS]: builds the fuzz targets with Clang and runs each for that long, 600 s unless told
# otherwise, from the inputs in tests/fuzz/corpus and what earlier runs have found. What breaks one is
# left in build/fuzz as crash-*, leak-*, timeout-* or oom-*, and makes this fail.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-600}
command -v clang++ >/dev/null || { echo "fuzz: needs Clang (Debian: clang)" >&2; exit 2; }
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz
code=0
for corpus in tests/fuzz/corpus/*; do
  name=$(basename "$corpus")
  found=build/fuzz/found/$name
  mkdir -p "$found"
  echo "fuzz: $name, $seconds s"
  "build/fuzz/bin/$name" -max_total_time="$seconds" -max_len=4096 -rss_limit_mb=1024 -timeout=20 \
    -artifact_prefix=build/fuzz/ -print_final_stats=1 "$found" "$corpus" \
    >"build/fuzz/$name.log" 2>&1 || { code=1; tail -20 "build/fuzz/$name.log"; }
  sed -n 's/^stat::number_of_executed_units:/fuzz:   inputs:/p' "build/fuzz/$name.log"
done
exit "$code"
