#!/bin/sh
# test.sh [--quick | --all]: installs what is missing, builds the release preset and runs the tests.
#
#   test.sh          everything that a change must pass; about 30 minutes on two processors
#   test.sh --quick  in a built tree: the tests that find most mistakes, in about 6 minutes
#   test.sh --all    everything, AArch64 under an emulator and both sanitizers over all tests included
#
# Each part says first how long it took here the last time, which build/test-times keeps.
set -eu
cd "$(dirname "$0")"

extent=${1:-}
case $extent in
  '') parts=6 ;;
  --quick) parts=4 ;;
  --all) parts=8 ;;
  -h | --help)
    sed -n '2,8s/^# \{0,1\}//p' "$0"
    exit
    ;;
  *)
    sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
times=build/test-times
mkdir -p build
number=0 code=0 whole=$(date +%s)
in_words() { printf '%d min %02d s' $(($1 / 60)) $(($1 % 60)); }
passed() { in_words $(($(date +%s) - whole)); }

# part NAME WHAT COMMAND...: a failure is kept for the end, because the other parts can still run.
part() {
  name=$1 what=$2
  shift 2
  number=$((number + 1))
  before=$(sed -n "s/^$name$extent //p" "$times" 2>/dev/null | tail -1)
  if [ -n "$before" ]; then before="$(in_words "$before") the last time"; fi
  echo
  echo "== $number of $parts: $what (${before:-not run here before}; after $(passed))"
  began=$(date +%s)
  result=0
  "$@" || result=$?
  if [ "$result" -eq 0 ]; then
    echo "$name$extent $(($(date +%s) - began))" >>"$times"
  else
    code=$result
    echo "== $what: FAILED ($result)"
  fi
}

ctests() {
  ctest --test-dir build/release --output-on-failure --parallel "$(nproc)" "$@"
}

pytests() {
  PATH="$PWD/build/release/bin:$PWD/.venv/bin:$PATH" \
    PYTHONPATH="$PWD/build/release/python${PYTHONPATH:+:$PYTHONPATH}" \
    .venv/bin/python -m pytest "$@"
}

# Two runs side by side: tests that start jobs wait much. The output of one is shown at its end.
all_pytests() {
  log=build/pytest.log
  pytests tests/python/calls tests/python/faces tests/python/project >"$log" 2>&1 &
  other=$!
  own=0
  pytests tests/python/jobs tests/python/gpus || own=$?
  wait "$other" || own=$?
  cat "$log"
  return "$own"
}

if [ "$extent" = --quick ]; then
  part build "the release preset is built" tools/build.sh --no-kernels
  [ "$code" -eq 0 ] || exit "$code"  # the others need it
  part conformance "every collective on three threads" build/release/bin/conformance_test \
    --gtest_brief=1 --gtest_filter='*local_3_*:*shm_threads_3_*'
  part ctest "short tests of the library and the command" \
    ctests --label-exclude 'long|gpu|model|install'
  part pytest "tests of the Python package's calls" pytests -q tests/python/calls
else
  part setup "what is missing is installed" tools/setup.sh
  # One architecture shows that the kernels compile; a wheel has all.
  part build "the release preset is built" tools/build.sh --kernels-for 90
  [ "$code" -eq 0 ] || exit "$code"  # the others need these two
  if [ "$extent" = --all ]; then
    part sanitize "unit and conformance tests under the sanitizers" tools/check/sanitize.sh
    part fuzz "ten minutes of each fuzz target" tools/check/fuzz.sh
    part aarch64 "for AArch64, by the cross compiler and an emulator" tools/check/aarch64.sh
    part ctest "the tests of the library and the command" ctests
    part slow "the slow ones" ctests --build-config slow
  else
    part sanitize "threads under the thread sanitizer" tools/check/sanitize.sh --fast tsan
    part fuzz "short runs of the fuzz targets, under the other sanitizers" tools/check/fuzz.sh --fast
    part ctest "the tests of the library and the command" ctests
  fi
  part pytest "the tests of the Python package" all_pytests
fi

echo
if [ "$code" -eq 0 ]; then
  echo "All $parts parts passed in $(passed)."
else
  echo "Not all passed ($(passed)); see FAILED above."
fi
exit "$code"
