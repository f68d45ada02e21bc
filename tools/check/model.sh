#!/bin/sh
# model.sh [--fast] [ranks] [hosts] [admission]
#
# Lets Spin explore all orders of events. Then checks that it finds the mistakes that can be put into the
# models. Every exploration is complete.
#   ranks  The ranks of one host join, meet in a barrier, abort or fail, and agree on the survivors, while
#          some of them end at any point (tests/model/ranks.pml). With 4 ranks, of which 2 may end, it
#          takes two minutes and 1 GiB of memory. --fast: 3 ranks, of which 2 may end; a few seconds
#   hosts  Hosts agree on the survivors and on their speakers, while ranks end and hosts are cut off
#          (tests/model/hosts.pml). With 2 ends and a cut, it takes five minutes and 1 GiB. --fast: 2
#          ends, or 1 end and a cut; a minute
#   admission  Newcomers join a job, while members and newcomers end at any point
#          (tests/model/admission.pml). With 3 members, 2 newcomers and 2 ends, it takes some minutes.
#          --fast: 1 end less, or a member less; half a minute
# Without names: all. Without Spin (Debian: spin) it reports that, and exits with 0.
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
# Spin's code for hosts.pml is long. A short exploration ends sooner than a better compilation.
optimise=-O2
[ $fast = no ] || optimise=-O0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# check WANTED MODEL SETTINGS: whether the checker finds errors, as WANTED (0 or 1) says.
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

# Each mistake needs a job in which it can do harm: two ranks on host 0, or on host 1, or a cut.
check_hosts() {
  one_each="-DR0=1 -DR1=1 -DR2=1"
  two_in_the_middle="-DR0=1 -DR1=2 -DR2=1"
  check 0 hosts "-DCRASHES=2"
  check 0 hosts "$two_in_the_middle -DCRASHES=2"
  check 0 hosts "$one_each -DCRASHES=1 -DCUTS=1"
  check 1 hosts "$one_each -DCRASHES=0 -DBREAKS=1 -DBUG=10"
  for bug in 1 2 6 7 8; do check 1 hosts "-DCRASHES=2 -DBUG=$bug"; done
  check 1 hosts "$two_in_the_middle -DCRASHES=2 -DBUG=5"
  for bug in 3 4 9; do check 1 hosts "$one_each -DCRASHES=1 -DCUTS=1 -DBUG=$bug"; done
  [ $fast = no ] || return 0
  check 0 hosts "-DR0=2 -DR1=2 -DR2=1 -DCRASHES=2"
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
