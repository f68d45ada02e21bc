"""torch.distributed over hocket beside gloo, on CPU tensors, in turns within one run.

    torchrun --nproc-per-node 2 bench/torch_gloo.py [--sizes 8,64K,64M] [--bind]

Prints microseconds a call: the median of the rounds. In a round each backend makes as many calls as
take some milliseconds, and the time is the slowest rank's. Rank 0 prints a table, and the number of
rows in which hocket needs at most half of gloo's time. Ends with an error if results are wrong.
"""

import argparse
import math
import os
import statistics
import time

import torch
import torch.distributed as dist

import hocket.torch  # noqa: F401: registers the backend's name

UNITS = {"K": 1 << 10, "M": 1 << 20}


def size_of(text):
    return int(text[:-1]) * UNITS[text[-1]] if text[-1] in UNITS else int(text)


def calls_of(count, group):
    """Maps names to calls. The larger tensor of a call has `count` elements, a multiple of n."""
    rank, n = dist.get_rank(group), dist.get_world_size(group)
    x, out = torch.ones(count), torch.zeros(count)
    part, small = torch.ones(count // n), torch.zeros(count // n)
    parts = [torch.zeros(count // n) for _ in range(n)]
    sent = [torch.ones(count // n) for _ in range(n)]
    highest = dist.ReduceOp.MAX  # with MAX the values stay the same however often a call is made

    def on_root(tensors):
        return tensors if rank == 0 else None

    def there_and_back():
        """Sends from rank 0 to rank 1 and back."""
        if rank == 0:
            dist.send(x, 1, group=group)
            dist.recv(out, 1, group=group)
        elif rank == 1:
            dist.recv(out, 0, group=group)
            dist.send(x, 0, group=group)

    def batch():
        ops = [
            dist.P2POp(dist.isend, part, (rank + 1) % n, group),
            dist.P2POp(dist.irecv, small, (rank - 1) % n, group),
        ]
        for work in dist.batch_isend_irecv(ops):
            work.wait()

    return {
        "all_reduce": lambda: dist.all_reduce(x, highest, group=group),
        "all_reduce, async": lambda: dist.all_reduce(x, highest, group, async_op=True).wait(),
        "broadcast": lambda: dist.broadcast(x, 0, group=group),
        "reduce": lambda: dist.reduce(x, 0, highest, group=group),
        "all_gather_into_tensor": lambda: dist.all_gather_into_tensor(out, part, group=group),
        "all_gather": lambda: dist.all_gather(parts, part, group=group),
        "gather": lambda: dist.gather(part, on_root(parts), 0, group=group),
        "scatter": lambda: dist.scatter(small, on_root(sent), 0, group=group),
        "reduce_scatter_tensor": lambda: dist.reduce_scatter_tensor(small, x, highest, group),
        "reduce_scatter": lambda: dist.reduce_scatter(small, sent, highest, group),
        "all_to_all_single": lambda: dist.all_to_all_single(out, x, group=group),
        "all_to_all": lambda: dist.all_to_all(parts, sent, group=group),
        "send and recv": there_and_back,
        "batch_isend_irecv": batch,
        "barrier": lambda: dist.barrier(group=group),
    }


def seconds(call, repeats):
    begin = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - begin) / repeats


def slowest(value, group):
    """Returns the largest of all ranks' numbers."""
    number = torch.tensor([value], dtype=torch.float64)
    dist.all_reduce(number, dist.ReduceOp.MAX, group=group)
    return number.item()


def check(group, rank, n):
    x = torch.arange(1000.0) * (rank + 1)
    dist.all_reduce(x, group=group)
    assert torch.equal(x, torch.arange(1000.0) * (n * (n + 1) // 2)), "all_reduce is wrong"


def measure(name, count, groups, rounds, least):
    """Returns each backend's median of seconds a call, and the median of the rounds' ratios."""
    calls = {backend: calls_of(count, group)[name] for backend, group in groups.items()}
    repeats = {}
    for backend, call in calls.items():
        repeats[backend] = 2
        for _ in range(2):  # the first calls take longer
            once = slowest(seconds(call, repeats[backend]), groups["hocket"])
            repeats[backend] = max(1, math.ceil(least / once))
    times = {backend: [] for backend in groups}
    for _ in range(rounds):
        for backend, call in calls.items():
            dist.barrier(group=groups["hocket"])
            times[backend].append(slowest(seconds(call, repeats[backend]), groups["hocket"]))
    ratios = [ours / theirs for ours, theirs in zip(times["hocket"], times["gloo"])]
    return {b: statistics.median(t) for b, t in times.items()}, statistics.median(ratios)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="8,1K,64K,1M,4M,16M,64M", help="bytes")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", default="", help="some of the calls, with semicolons")
    parser.add_argument("--least", type=float, default=5e-3, help="seconds a round takes")
    parser.add_argument("--bind", action="store_true", help="each rank to a processor of its own")
    options = parser.parse_args()
    if options.bind:
        processors = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {processors[int(os.environ["LOCAL_RANK"]) % len(processors)]})
    torch.set_num_threads(1)
    dist.init_process_group("hocket")
    groups = {"hocket": dist.group.WORLD, "gloo": dist.new_group(backend="gloo")}
    rank, n = dist.get_rank(), dist.get_world_size()
    for group in groups.values():
        check(group, rank, n)
    names = options.calls.split(";") if options.calls else list(calls_of(n, dist.group.WORLD))
    rows = good = 0
    if rank == 0:
        print(f"{'call':24}{'bytes':>10}{'hocket':>12}{'gloo':>12}{'ratio':>8}   us, {n} ranks, "
              f"PyTorch {torch.__version__}")
    for name in names:
        for text in options.sizes.split(","):
            count = max(n, size_of(text) // 4 // n * n)
            if name == "barrier" and text != options.sizes.split(",")[0]:
                continue
            times, ratio = measure(name, count, groups, options.rounds, options.least)
            rows, good = rows + 1, good + (ratio <= 0.5)
            if rank == 0:
                print(f"{name:24}{text:>10}{times['hocket'] * 1e6:12.1f}{times['gloo'] * 1e6:12.1f}"
                      f"{ratio:8.2f}", flush=True)
    if rank == 0:
        print(f"at most half in {good} of {rows}")
    dist.destroy_process_group()


main()
