#!/bin/sh
# Installs what is missing, builds the release preset and runs all tests. It says before each part
# what that is and how long it took here the last time, which build/test-times keeps.
set -eu
cd "$(dirname "$0")"

parts=7
times=build/test-times
mkdir -p build
number=0 code=0 whole=$(date +%s)
in_words() { printf '%d min %02d s' $(($1 / 60)) $(($1 % 60)); }
passed() { in_words $(($(date +%s) - whole)); }

# part NAME WHAT COMMAND...: a failure is kept for the end, as the others can still be run.
part() {
  name=$1 what=$2
  shift 2
  number=$((number + 1))
  before=$(sed -n "s/^$name //p" "$times" 2>/dev/null | tail -1)
  if [ -n "$before" ]; then before="$(in_words "$before") the last time"; fi
  echo
  echo "== $number of $parts: $what (${before:-not run here before}; after $(passed))"
  began=$(date +%s)
  result=0
  "$@" || result=$?
  if [ "$result" -eq 0 ]; then
    echo "$name $(($(date +%s) - began))" >>"$times"
  else
    code=$result
    echo "== $what: FAILED ($result)"
  fi
}

pytests() {
  PATH="$PWD/build/release/bin:$PWD/.venv/bin:$PATH" \
    PYTHONPATH="$PWD/build/release/python${PYTHONPATH:+:$PYTHONPATH}" \
    .venv/bin/python -m pytest tests/python
}

if [ ! -e "$times" ]; then
  echo "All tests: about 45 minutes on two processors where nothing is built yet."
else
  total=$(awk '{last[$1] = $2} END {for (part in last) sum += last[part]; print sum + 0}' "$times")
  echo "All tests: $(in_words "$total") the last time."
fi
part setup "what is missing is installed" tools/setup.sh
part build "the release preset is built" tools/build.sh
[ "$code" -eq 0 ] || exit "$code"  # the others need these two
part sanitize "unit and conformance tests under the sanitizers" tools/sanitize.sh --fast
part fuzz "short runs of the fuzz targets" tools/fuzz.sh --fast
part aarch64 "for AArch64, by the cross compiler and an emulator" tools/aarch64.sh --fast
part ctest "the tests of the library and the command" \
  ctest --test-dir build/release --output-on-failure --parallel "$(nproc)"
part pytest "the tests of the Python package" pytests

echo
if [ "$code" -eq 0 ]; then
  echo "All $parts parts passed in $(passed)."
else
  echo "Not all passed ($(passed)); see FAILED above."
fi
exit "$code"
