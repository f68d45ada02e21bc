"""Single calls on a busy machine: hocket beside gloo under PyTorch, in turns.

    bench/busy.py --busy 30                  # PYTHONPATH as for the tests; needs PyTorch

Starts two ranks, and processes that compute without end. A rank computes for a moment before each
all_reduce, as programs do. The backends alternate: each gets a few calls, then a barrier of gloo,
then the other one. Prints microseconds a call: medians with their middle halves, and means. Ends
with an error if a sum is wrong.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

UNITS = {"K": 1 << 10, "M": 1 << 20}


def size_of(text):
    return int(text[:-1]) * UNITS[text[-1]] if text[-1] in UNITS else int(text)


def described(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.0f} ({low:.0f} to {high:.0f}), mean {statistics.fmean(values):.0f}"


def compute(milliseconds):
    """Uses this much processor time, however much wall-clock time passes."""
    until = time.process_time() + milliseconds * 1e-3
    while time.process_time() < until:
        pass


def run_rank(options):
    import torch
    import torch.distributed as dist

    import hocket.torch  # noqa: F401: registers the backend's name

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    groups = {"hocket": dist.new_group(backend="hocket"), "gloo": dist.new_group(backend="gloo")}
    for text in options.sizes.split(","):
        times = {name: [] for name in groups}
        x = torch.empty(max(1, size_of(text) // 4))
        for turn in range(options.calls // options.batch + 1):
            for name in sorted(groups, reverse=turn % 2 == 0):
                dist.barrier()
                for _ in range(options.batch):
                    compute(options.between)
                    x.fill_(rank + 1.0)
                    began = time.perf_counter()
                    dist.all_reduce(x, group=groups[name])
                    took = time.perf_counter() - began
                    assert x.eq(size * (size + 1) / 2).all(), (name, text)
                    if turn > 0:
                        times[name].append(took * 1e6)
        if rank == 0:
            cells = "   ".join(f"{name} {described(values)}" for name, values in times.items())
            middle, mean = (
                of(times["hocket"]) / of(times["gloo"])
                for of in (statistics.median, statistics.fmean)
            )
            print(f"{text:>4}: {cells}   medians {middle:.2f}, means {mean:.2f}", flush=True)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="8,1K,64K,1M,16M", help="bytes")
    parser.add_argument("--calls", type=int, default=200, help="of each backend and size")
    parser.add_argument("--batch", type=int, default=10, help="calls of a turn")
    parser.add_argument("--between", type=float, default=0.5, help="ms of computing before a call")
    parser.add_argument("--busy", type=int, default=30, help="processes that compute beside")
    options = parser.parse_args()
    if "RANK" in os.environ:
        return run_rank(options)
    crowd = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.busy)
    ]
    try:
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
        return subprocess.run([*command, *sys.argv], check=False).returncode
    finally:
        for one in crowd:
            one.kill()


if __name__ == "__main__":
    sys.exit(main())
