#!/bin/sh
# relacy.sh [executions] [--gtest_filter=...]
#
# Runs the lock-free parts over Relacy (tests/relacy), for minutes. Each program runs unchanged, and with
# every possible mutation, so many times (200,000), each in another order. ctest's relacy_test does some
# hundreds to thousands.
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
