#!/bin/sh
# Shows what hocket does: installs what is missing, builds, looks at the machine, trains a network
# on four ranks, and measures all_reduce beside the MPI libraries of the distribution.
set -eu
cd "$(dirname "$0")"

tools/setup.sh --peers
tools/build.sh

PATH="$PWD/build/release/bin:$PWD/.venv/bin:$PATH"
PYTHONPATH="$PWD/build/release/python${PYTHONPATH:+:$PYTHONPATH}"
export PATH PYTHONPATH

echo
hocket doctor --short

echo
hocket run -n 4 -- python examples/train_digits.py

echo
hocket bench all_reduce -n 2 --memory ordinary,symmetric --compare \
  --html build/bench.html --json build/bench.json
echo
echo "The picture: $PWD/build/bench.html"
