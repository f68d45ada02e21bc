#!/bin/sh
# relacy.sh [executions] [--gtest_filter=...]
#
# Runs the lock-free code (tests/relacy) in the simulator Relacy, which executes it in many orders
# of its steps. Each program runs unchanged, and then with each possible mutation: a weakened
# operation that must lead to an error. Each of these variants runs EXECUTIONS times (200,000),
# which takes minutes. ctest's relacy_test executes each variant only hundreds to thousands of
# times.
set -eu
cd "$(dirname "$0")/../.."

executions=200000
case ${1:-} in
  [0-9]*) executions=$1; shift ;;
esac
program=build/release/bin/relacy_test
if [ ! -x "$program" ]; then
  echo "relacy: $program is not there; run tools/setup.sh and tools/build.sh (needs relacy-dev)" >&2
  exit 1
fi
HOCKET_RELACY_EXECUTIONS=$executions exec "$program" "$@"
