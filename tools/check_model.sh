#!/bin/sh
# check_model.sh [--fast]
#
# Has Spin walk through all orders in which ranks can join, meet in a barrier, abort or fail, and agree
# who goes on, while some of them end at any point (tests/model/ranks.pml); then sees that it finds the
# mistakes that can be put into the model. Every walk is whole. With 4 ranks, of which 2 may end, it
# takes two minutes and 1 GiB of memory; --fast: a few seconds, with 3 ranks, of which 2 may end.
# Without Spin (Debian: spin) it says so and ends well.
set -eu
model=$(cd "$(dirname "$0")/.." && pwd)/tests/model/ranks.pml
command -v spin >/dev/null || { echo "check_model: there is no spin here; skipped"; exit 0; }
fast=no
for argument in "$@"; do
  case $argument in
    --fast) fast=yes ;;
    *) echo "check_model: unknown argument $argument; usage: $0 [--fast]" >&2; exit 2 ;;
  esac
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# check WANTED SETTINGS: whether the checker finds errors, as WANTED (0 or 1) says.
check() {
  wanted=$1
  shift
  # shellcheck disable=SC2086  # a list of words
  spin -a $1 "$model"
  ${CC:-cc} -O2 -DSAFETY -DCOLLAPSE -o pan pan.c
  ./pan -m100000 -w24 >log 2>&1 || true
  errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' log)
  states=$(sed -n 's/ *\([0-9.e+]*\) states, stored.*/\1/p' log)
  if [ "$errors" != "$wanted" ] || grep -q "out of memory\|max search depth too small" log; then
    cat log
    echo "check_model: $1: $errors errors, expected $wanted" >&2
    exit 1
  fi
  echo "check_model: $1: $errors errors, as expected; $states states"
}

check 0 "-DRANKS=3 -DCRASHES=2"
for bug in 1 2 3 4; do check 1 "-DRANKS=3 -DCRASHES=2 -DBUG=$bug"; done
if [ $fast = no ]; then
  check 0 "-DRANKS=4 -DCRASHES=2"
  for bug in 1 2 3 4; do check 1 "-DRANKS=4 -DCRASHES=2 -DBUG=$bug"; done
fi
