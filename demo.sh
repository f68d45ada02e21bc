#!/bin/sh
# Shows what hocket does: looks at the machine, trains a network on four ranks, and measures
# all_reduce beside the MPI libraries of the distribution. Where dist has a wheel (tools/release/wheel.sh makes
# it) that is installed into build/demo, which takes a moment; else what is shown is built, and nothing
# more.
set -eu
cd "$(dirname "$0")"

wheel=$(ls -t dist/hocket-*"$(uname -m)".whl 2>/dev/null | head -1)
if [ -n "$wheel" ] && python3 -c 'import sys, venv; assert sys.version_info >= (3, 11)' 2>/dev/null; then
  echo "demo: installing $wheel into build/demo"
  python3 -m venv build/demo
  build/demo/bin/python -m pip install -q --disable-pip-version-check --force-reinstall --no-deps \
    "$wheel"
  build/demo/bin/python -m pip install -q --disable-pip-version-check "$wheel"
  exec build/demo/bin/hocket demo --html build/bench.html
fi

tools/setup.sh --no-tests --peers
# The kernels for GPUs take nvcc minutes, and nothing here is on a GPU.
tools/build.sh --no-kernels --no-tests hocket_command _hocket peers

PATH="$PWD/build/release/bin:$PWD/.venv/bin:$PATH"
PYTHONPATH="$PWD/build/release/python${PYTHONPATH:+:$PYTHONPATH}"
export PATH PYTHONPATH
exec python -m hocket demo --compare --html build/bench.html
