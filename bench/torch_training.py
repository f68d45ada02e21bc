"""hocket beside NCCL under PyTorch on GPUs: host time of a call, DDP, FSDP2, and what overlaps.

    torchrun --nproc-per-node 2 bench/torch_training.py [-o FILE]

Each rank has one GPU. Both backends are groups of the same processes and alternate, repetition by
repetition. The model is a transformer of GPT-2's small shape, 124 M parameters, under bfloat16 autocast.
Prints medians with their middle halves, and writes JSON with -o. `--device cpu --layers 2 --width 64
--vocabulary 500 --length 32` runs all of it against gloo, to check that the program works.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel

import hocket.torch  # noqa: F401


class Block(nn.Module):
    """Attention and a small network, each after a layer norm."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.norms[0](x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norms[1](x))))


class Transformer(nn.Module):
    """A transformer whose initial weights are equal on all ranks."""

    def __init__(self, how):
        super().__init__()
        torch.manual_seed(1)
        self.tokens = nn.Embedding(how.vocabulary, how.width)
        self.places = nn.Embedding(how.length, how.width)
        self.blocks = nn.ModuleList(Block(how.width, how.heads) for _ in range(how.layers))
        self.norm = nn.LayerNorm(how.width)
        self.head = nn.Linear(how.width, how.vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, x):
        y = self.tokens(x) + self.places(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            y = block(y)
        return self.head(self.norm(y))


class Training:
    """A model, its optimizer, and data. The data depend on rank and step, not on the backend."""

    def __init__(self, how, model, autocast):
        self.how, self.model, self.autocast = how, model, autocast
        fused = how.device == "cuda"
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=fused)
        generator = torch.Generator().manual_seed(10 + dist.get_rank())
        shape = (8, how.batch, how.length + 1)
        self.data = torch.randint(how.vocabulary, shape, generator=generator).to(how.device)
        self.losses = []

    def step(self):
        part = self.data[len(self.losses) % len(self.data)]
        on = (
            torch.autocast(self.how.device, torch.bfloat16)
            if self.autocast
            else contextlib.nullcontext()
        )
        with on:
            loss = F.cross_entropy(self.model(part[:, :-1]).flatten(0, 1).float(), part[:, 1:].flatten())
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.losses.append(loss.detach())


def ddp(how, group):
    ids = [torch.cuda.current_device()] if how.device == "cuda" else None
    model = Transformer(how).to(how.device)
    return Training(how, DistributedDataParallel(model, ids, process_group=group), True)


def fsdp2(how, group):
    model = Transformer(how).to(how.device)
    mesh = DeviceMesh.from_group(group, how.device)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in model.blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    return Training(how, fully_shard(model, mesh=mesh, mp_policy=policy), False)


def synchronize(how):
    if how.device == "cuda":
        torch.cuda.synchronize()


def spread(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return {"median": middle, "low": low, "high": high}


# --- Host time of a call --------------------------------------------------------------------------
def host_time(how, groups):
    """Returns microseconds until `dist.all_reduce` returns to its caller, by case and backend."""
    cells = {"CPU 8 B": (2, "cpu")}
    if how.device == "cuda":
        cells |= {"CUDA 8 B": (2, "cuda"), "CUDA 1 MiB": (1 << 18, "cuda")}
    result = {}
    for cell, (count, device) in cells.items():
        x = torch.zeros(count, device=device)
        names = [name for name in groups if device == "cuda" or name != "nccl"]
        times = {name: [] for name in names}
        for repetition in range(how.repetitions + 1):
            for name in names:
                group = groups[name]
                synchronize(how)
                dist.barrier(groups["gloo"])
                began = time.perf_counter()
                for _ in range(how.calls):
                    dist.all_reduce(x, group=group)
                took = time.perf_counter() - began
                synchronize(how)
                if repetition > 0:
                    times[name].append(took / how.calls * 1e6)
        result[cell] = {name: spread(values) for name, values in times.items()}
    return result


# --- Training -------------------------------------------------------------------------------------
def train(how, kind, groups):
    """Returns milliseconds a step by backend, each backend's losses, and figures of a profile."""
    made = {name: kind(how, group) for name, group in groups.items()}
    times = {name: [] for name in made}
    issued = {name: [] for name in made}
    for turn in range(how.repetitions + 1):
        for name, training in made.items():
            synchronize(how)
            dist.barrier(dist.group.WORLD)
            began = time.perf_counter()
            for _ in range(how.steps):
                training.step()
            middle = time.perf_counter()
            synchronize(how)
            if turn > 0:
                times[name].append((time.perf_counter() - began) / how.steps * 1e3)
                issued[name].append((middle - began) / how.steps * 1e3)
    losses = {name: [loss.item() for loss in training.losses] for name, training in made.items()}
    one, other = losses.values()
    differ = max(abs(a - b) for a, b in zip(one, other))
    assert differ < how.tolerance, f"losses differ by {differ}: {one[-1]} and {other[-1]}"
    result = {
        "step": {name: spread(values) for name, values in times.items()},
        "host": {name: spread(values) for name, values in issued.items()},
        "last loss": {name: values[-1] for name, values in losses.items()},
        "losses differ by": differ,
    }
    if how.device == "cuda":
        result["profile"] = {name: profile(how, training) for name, training in made.items()}
    return result


def profile(how, training):
    """Returns the GPU work of some steps, and the share of communication that overlaps other kernels."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profiler:
        for _ in range(3):
            training.step()
        synchronize(how)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(file))
        events = json.loads(file.read_text())["traceEvents"]
    kernels = [event for event in events if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    ours, others, by_kernel = [], [], {}
    for event in kernels:
        span = (event["ts"], event["ts"] + event["dur"])
        if not any(word in event["name"] for word in ("nccl", "hocket_peer")):
            others.append(span)
            continue
        ours.append(span)
        grid, block = event["args"].get("grid"), event["args"].get("block")
        key = f"{event['name'].split('(')[0]} {grid} x {block}"
        row = by_kernel.setdefault(key, {"calls": 0, "us": 0.0})
        row["calls"] += 1
        row["us"] += event["dur"]
    whole, both = covered(ours), covered(ours) + covered(others) - covered(ours + others)
    return {
        "communication ms a step": whole / 3e3,
        "other kernels ms a step": covered(others) / 3e3,
        "busy ms a step": covered(ours + others) / 3e3,
        "hidden": both / whole if whole else 1.0,
        "kernels": dict(sorted(by_kernel.items(), key=lambda row: -row[1]["us"])[:6]),
    }


def covered(spans):
    """Returns the time that at least one of the spans covers."""
    total, until = 0.0, float("-inf")
    for first, last in sorted(spans):
        total += max(0.0, last - max(first, until))
        until = max(until, last)
    return total


# --- The whole ------------------------------------------------------------------------------------
def show(title, by_name, unit):
    parts = [
        f"{name} {row['median']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
        for name, row in by_name.items()
    ]
    print(f"{title}, {unit}: {'; '.join(parts)}", flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--device", default="cuda")
    for name, value in {
        "layers": 12,
        "width": 768,
        "heads": 12,
        "vocabulary": 50257,
        "length": 1024,
        "batch": 4,
        "repetitions": 15,
        "steps": 6,
        "calls": 200,
    }.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--tolerance", type=float, default=0.02)
    return parser.parse_args()


def main():
    how = arguments()
    if how.device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("gloo")
    peer = "nccl" if how.device == "cuda" else "gloo"
    groups = {name: dist.new_group(backend=name) for name in ("hocket", peer)}
    both = {**groups, "gloo": dist.group.WORLD}
    result = {"torch": torch.__version__, "setting": {**vars(how), "output": None}}
    if how.device == "cuda":
        result["gpu"] = torch.cuda.get_device_name()
    is_first = dist.get_rank() == 0
    result["all_reduce, us"] = host_time(how, both)
    if is_first:
        print(result.get("gpu"), torch.__version__)
        for cell, by_name in result["all_reduce, us"].items():
            show(f"all_reduce, {cell}, host time", by_name, "us a call")
    for kind in (ddp, fsdp2):
        result[kind.__name__] = made = train(how, kind, groups)
        if is_first:
            show(f"{kind.__name__} step", made["step"], "ms")
            show(f"{kind.__name__} until the host has issued it", made["host"], "ms")
            print(f"  losses differ by {made['losses differ by']:.3g}")
            for name, row in made.get("profile", {}).items():
                print(f"  {name}: {json.dumps(row, indent=1)}", flush=True)
    if is_first and how.output:
        how.output.write_text(json.dumps(result, indent=1))
    for group in groups.values():
        dist.destroy_process_group(group)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
