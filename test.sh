#!/bin/sh
# Installs what is missing, builds the release preset and runs all tests: the fast part of those
# under the sanitizers, a short run of the fuzz targets, ctest's, then pytest's.
set -eu
cd "$(dirname "$0")"

tools/setup.sh
tools/build.sh

code=0
tools/sanitize.sh --fast || code=$?
tools/fuzz.sh --fast || code=$?
ctest --test-dir build/release --output-on-failure --parallel "$(nproc)" || code=$?
PATH="$PWD/build/release/bin:$PWD/.venv/bin:$PATH"
PYTHONPATH="$PWD/build/release/python${PYTHONPATH:+:$PYTHONPATH}"
export PATH PYTHONPATH
.venv/bin/python -m pytest tests/python || code=$?
exit "$code"
