#!/bin/sh
# build_test.sh PREFIX GENERATOR: builds programs of MPI in C and C++ against a hocket that is installed
# in PREFIX, by each way there is, and runs them: on two ranks, and alone without `hocket run`.
set -eu
prefix=$1 generator=$2
source=$(cd "$(dirname "$0")/outside" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# run WAY PROGRAM LANGUAGE
run() {
  "$prefix/bin/hocket" run --mpi -n 2 -- "$2" >"$work/said" || { cat "$work/said"; exit 1; }
  for rank in 0 1; do
    grep -q "rank $rank of 2: right in $3\$" "$work/said" ||
      { echo "$1, $3, rank $rank: no right result:"; cat "$work/said"; exit 1; }
  done
  "$2" | grep -q "rank 0 of 1: right in $3\$" || { echo "$1, $3, alone: no right result"; exit 1; }
  echo "$1, $3: right"
}

cc=$prefix/bin/hocket-mpicc cxx=$prefix/bin/hocket-mpicxx
"$cc" -O2 -c "$source/main.c" -o "$work/main.o"
"$cc" "$work/main.o" -o "$work/c" -lm
run "hocket-mpicc" "$work/c" C
"$cxx" -std=c++17 "$source/main.cc" -o "$work/cxx"
run "hocket-mpicxx" "$work/cxx" C++

echo "what the wrappers show"
shown=$("$cc" -show -g "$source/main.c" -o "$work/shown")
[ ! -e "$work/shown" ]
sh -c "$shown"
run "the command of -show" "$work/shown" C
cc "$source/main.c" $("$cc" -showme:compile) $("$cc" -showme:link) -o "$work/flags"
run "the flags of -showme" "$work/flags" C
case $("$cc" -show -c a.c) in *-lmpi_abi*) echo "-c does not link"; exit 1 ;; esac
case $(HOCKET_MPICC="ccache gcc" "$cc" -show a.c) in "ccache gcc "*) ;; *) exit 1 ;; esac
if "$cc" -showme:else 2>"$work/refused"; then exit 1; fi
grep -q "unknown option -showme:else" "$work/refused"
"$cxx" -v >/dev/null 2>&1

for by in package wrappers; do
  echo "by CMake: $by"
  cmake -G "$generator" -S "$source" -B "$work/$by" -DBY=$by -Dhocket_ROOT="$prefix" \
    -DMPI_C_COMPILER="$cc" -DMPI_CXX_COMPILER="$cxx" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
  cmake --build "$work/$by" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
  run "CMake by its $by" "$work/$by/in_c" C
  run "CMake by its $by" "$work/$by/in_cxx" C++
done

if command -v pkg-config >/dev/null; then
  PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name hocket-mpi.pc)")
  export PKG_CONFIG_PATH
  # shellcheck disable=SC2046  # flags are words
  cc "$source/main.c" $(pkg-config --cflags --libs hocket-mpi) -o "$work/pc"
  run "pkg-config" "$work/pc" C
else
  echo "pkg-config: not found, skipped"
fi
