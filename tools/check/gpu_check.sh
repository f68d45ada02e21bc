#!/bin/sh
# gpu_check.sh [--build FOLDER] [--out FOLDER] [--sanitize] [--mps]: on a machine with GPUs, builds,
# tests on 1, 2 and 4 of them, measures beside NCCL in the same run, and prints a short table.
#
# --build: uses a finished build (with bin, lib and python in it). --out: the folder of figures,
# pictures and logs; default gpu_check. --sanitize: small cases under compute-sanitizer too.
# --mps: tests of a shared GPU also under NVIDIA's MPS, which is started and ended for them, so no
# other user may use the GPUs meanwhile. NVLink multicast stays off.
set -eu
cd "$(dirname "$0")/../.."
build=
out=gpu_check
sanitize=
mps=
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    --sanitize) sanitize=1; shift ;;
    --mps) mps=1; shift ;;
    *) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
done
if [ -z "$build" ]; then
  tools/setup.sh
  tools/build.sh
  build=build/release
  PATH="$PWD/.venv/bin:$PATH"
fi
build=$(cd "$build" && pwd)
mkdir -p "$out"
export NCCL_NVLS_ENABLE=0 PATH="$build/bin:$PATH" PYTHONPATH="$build/python${PYTHONPATH:+:$PYTHONPATH}"

# If the system has no NCCL, use the one in the Python package nvidia-nccl.
if [ -z "${HOCKET_NCCL_LIBRARY:-}" ] && ! ldconfig -p | grep -q libnccl.so.2; then
  folder=$(python3 -c 'import nvidia.nccl; print(nvidia.nccl.__path__[0])' 2>/dev/null || true)
  [ -z "$folder" ] || export HOCKET_NCCL_LIBRARY="$folder/lib/libnccl.so.2"
fi

gpus=$(nvidia-smi --query-gpu=name --format=csv,noheader | wc -l)
[ "$gpus" -gt 0 ] || { echo "gpu_check: there is no GPU here"; exit 1; }
code=0
results=
note() { results="$results$1
"; }
# step NAME LOG COMMAND...: runs the command with its output in LOG, and adds a line to the results.
step() {
  name=$1 log=$out/$2
  shift 2
  begin=$(date +%s)
  if "$@" >"$log" 2>&1; then said=passed; else said="FAILED ($?)" code=1; fi
  note "$(printf '%-46s %s, %d s' "$name" "$said" $(($(date +%s) - begin)))"
}
# first N: prints the numbers of the first N GPUs, such as 0,1,2.
first() { seq -s, 0 $(($1 - 1)); }

for n in 1 2 4; do
  [ "$n" -le "$gpus" ] || continue
  step "tests on $n GPU(s), threads" "gpu_test_$n.txt" \
    env CUDA_VISIBLE_DEVICES="$(first $n)" gpu_test --gtest_brief=1
done
# The Python tests run in parallel if pytest-xdist is installed.
parallel=
if python3 -c 'import xdist' 2>/dev/null; then parallel='-n 4'; fi
step "tests in Python, processes" pytest.txt \
  python3 -m pytest $parallel -q -rPs --durations=12 -p no:cacheprovider tests/gpu
step "campaign of faults, a minute" campaign.txt \
  python3 tools/faults/chaos.py campaign --place gpus --minutes 1 --log "$out/campaign.jsonl"
if [ -n "$mps" ]; then
  nvidia-cuda-mps-control -d
  trap 'echo quit | nvidia-cuda-mps-control' EXIT
  step "tests of a shared GPU, under MPS" pytest_mps.txt env CUDA_VISIBLE_DEVICES=0 \
    python3 -m pytest -q -p no:cacheprovider tests/gpu/test_shared_gpu.py tests/gpu/test_times.py
  step "campaign of faults, under MPS" campaign_mps.txt env CUDA_VISIBLE_DEVICES=0 \
    python3 tools/faults/chaos.py campaign --place gpus --minutes 1 --log "$out/campaign_mps.jsonl"
  echo quit | nvidia-cuda-mps-control
  trap - EXIT
fi
if [ -n "$sanitize" ]; then
  for tool in memcheck racecheck synccheck; do
    step "compute-sanitizer $tool" "$tool.txt" compute-sanitizer --tool $tool --error-exitcode 9 \
      gpu_test --gtest_brief=1 --gtest_filter='*peer_2_all_reduce:*peer_2_all_to_all:*peer_2_barrier'
  done
fi

for n in 2 4; do
  [ "$n" -le "$gpus" ] || continue
  step "bench, $n ranks, in a graph" "bench_$n.txt" hocket bench barrier all_reduce all_gather \
    reduce_scatter all_to_all broadcast reduce send_recv -n "$n" --device cuda --compare nccl \
    --sizes 8,4K,64K,256K,1M,4M,16M,64M --repeats 7 --min-time 10 \
    --json "$out/bench_$n.json" --html "$out/bench_$n.html"
  step "bench, $n ranks, one call after the other" "eager_$n.txt" hocket bench barrier all_reduce \
    -n "$n" --device cuda --launch eager --compare nccl --sizes 8,1M --repeats 7 --min-time 10
done

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | sort | uniq -c
hocket doctor | grep -iE 'cuda|nccl|peer' || true
for n in 2 4; do
  for log in "$out/bench_$n.txt" "$out/eager_$n.txt"; do
    [ -f "$log" ] && grep -vE '^#|^$' "$log"
  done
done
printf '\n%s' "$results"
exit $code
