#!/bin/sh
# model.sh [--fast] [ranks] [hosts] [admission]
#
# Lets the model checker Spin explore all orders of events in the models of tests/model. Each model
# can also be built with one of several deliberate bugs. For each bug the script checks that Spin
# finds an error. Every exploration is complete.
#   ranks      ranks.pml: The ranks of one host join, meet in a barrier, abort or fail, and agree on
#              the survivors. Some ranks end at any point. Takes 2 minutes and 1 GiB of memory with
#              4 ranks, of which 2 may end. --fast: 3 ranks, of which 2 may end; a few seconds.
#   hosts      hosts.pml: Hosts agree on the survivors and on their speakers. Meanwhile ranks end,
#              and hosts or single ranks are cut off from each other. Takes 5 minutes and 1 GiB with
#              2 ends and a cut. --fast: 2 ends, or 1 end and a cut; a minute.
#   admission  admission.pml: Newcomers join a job, while members and newcomers end at any point.
#              Takes some minutes with 3 members, 2 newcomers and 2 ends. --fast: one end or one
#              member less; half a minute.
# Without names the script checks all models. Without Spin (Debian: spin) it says so, and exits with
# 0.
set -eu
models=$(cd "$(dirname "$0")/../.." && pwd)/tests/model
command -v spin >/dev/null || { echo "model: there is no spin here; skipped"; exit 0; }
fast=no
chosen=
for argument in "$@"; do
  case $argument in
    --fast) fast=yes ;;
    ranks | hosts | admission) chosen="$chosen $argument" ;;
    *) echo "model: unknown argument $argument; usage: $0 [--fast] [ranks] [hosts] [admission]" >&2; exit 2 ;;
  esac
done
# Spin generates a long C program for hosts.pml. For a short exploration, compiling without
# optimisation saves more time than the faster program would.
optimise=-O2
[ $fast = no ] || optimise=-O0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# check WANTED MODEL SETTINGS: explores MODEL and fails unless Spin finds WANTED errors: 0, or 1 for
# a model with a bug.
check() {
  wanted=$1
  # shellcheck disable=SC2086  # a list of words
  spin -a $3 "$models/$2.pml"
  ${CC:-cc} $optimise -DSAFETY -DCOLLAPSE -o pan pan.c
  ./pan -m100000 -w24 >log 2>&1 || true
  errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' log)
  states=$(sed -n 's/ *\([0-9.e+]*\) states, stored.*/\1/p' log)
  if [ "$errors" != "$wanted" ] || grep -q "out of memory\|max search depth too small" log; then
    cat log
    echo "model: $2 $3: $errors errors, expected $wanted" >&2
    exit 1
  fi
  echo "model: $2 $3: $errors errors, as expected; $states states"
}

check_ranks() {
  check 0 ranks "-DRANKS=3 -DCRASHES=2"
  for bug in 1 2 3 4; do check 1 ranks "-DRANKS=3 -DCRASHES=2 -DBUG=$bug"; done
  [ $fast = no ] || return 0
  check 0 ranks "-DRANKS=4 -DCRASHES=2"
  for bug in 1 2 3 4; do check 1 ranks "-DRANKS=4 -DCRASHES=2 -DBUG=$bug"; done
}

# Each bug needs a job in which it can do harm: two ranks on host 0, two ranks on host 1, or a cut.
check_hosts() {
  one_each="-DR0=1 -DR1=1 -DR2=1"
  two_in_the_middle="-DR0=1 -DR1=2 -DR2=1"
  check 0 hosts "-DCRASHES=2"
  check 0 hosts "$two_in_the_middle -DCRASHES=2"
  check 0 hosts "$one_each -DCRASHES=1 -DCUTS=1"
  check 0 hosts "$one_each -DCRASHES=1 -DBREAKS=2"
  check 0 hosts "$two_in_the_middle -DCRASHES=1 -DBREAKS=1"
  check 1 hosts "$one_each -DCRASHES=0 -DBREAKS=2 -DBUG=10"
  check 1 hosts "$two_in_the_middle -DCRASHES=0 -DBREAKS=1 -DROUNDS=2 -DBUG=11"
  for bug in 1 2 6 7 8; do check 1 hosts "-DCRASHES=2 -DBUG=$bug"; done
  check 1 hosts "$two_in_the_middle -DCRASHES=2 -DBUG=5"
  for bug in 3 4 9; do check 1 hosts "$one_each -DCRASHES=1 -DCUTS=1 -DBUG=$bug"; done
  [ $fast = no ] || return 0
  check 0 hosts "-DR0=2 -DR1=2 -DR2=1 -DCRASHES=2"
  check 0 hosts "$one_each -DCRASHES=0 -DBREAKS=3"
  check 0 hosts "-DCRASHES=1 -DBREAKS=2"
  check 0 hosts "$one_each -DCRASHES=2 -DCUTS=1"
  check 0 hosts "-DCRASHES=2 -DCUTS=1"
  check 0 hosts "$two_in_the_middle -DCRASHES=2 -DCUTS=1"
}

check_admission() {
  one_of_each="-DMEMBERS=2 -DNEWCOMERS=1 -DDEATHS=1"
  for bug in 1 2 3; do check 1 admission "$one_of_each -DBUG=$bug"; done
  check 0 admission "-DMEMBERS=3 -DNEWCOMERS=2 -DDEATHS=1"
  check 0 admission "-DMEMBERS=2 -DNEWCOMERS=2 -DDEATHS=2"
  [ $fast = no ] || return 0
  check 0 admission "-DMEMBERS=3 -DNEWCOMERS=2 -DDEATHS=2"
}

for model in ${chosen:-ranks hosts admission}; do "check_$model"; done
