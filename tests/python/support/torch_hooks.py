"""Training with PyTorch's DDP communication hooks: ``python torch_hooks.py NAMES RANK SIZE FILE BACKEND``.

NAMES: one_bucket or many_buckets. Each hook prints its name and the losses of its steps.
"""

import sys

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import (
    debugging_hooks,
    default_hooks,
    optimizer_overlap_hooks,
    post_localSGD_hook,
    powerSGD_hook,
    quantization_hooks,
)
from torch.nn.parallel import DistributedDataParallel
from torch_programs import main


def registered(hook, make_state=lambda: None):
    def register(model):
        model.register_comm_hook(make_state(), hook)

    return register


def kept(hook):
    """The hook, with a wait for the GPU before it returns. Some hooks of PyTorch drop tensors in
    their callbacks. The backward pass may then reuse that memory while the callback's stream
    still reads it. With NCCL, too, no two runs give the same losses.
    """

    def call(state, bucket):
        future = hook(state, bucket)
        if bucket.buffer().is_cuda:
            torch.cuda.synchronize()
        return future

    return call


def builtin(kind):
    return lambda model: model._register_builtin_comm_hook(kind)


def power_sgd(**options):
    return lambda: powerSGD_hook.PowerSGDState(
        process_group=None, start_powerSGD_iter=2, min_compression_rate=0.5, **options
    )


def local_sgd():
    return post_localSGD_hook.PostLocalSGDState(
        process_group=None, subgroup=dist.new_group(), start_localSGD_iter=3
    )


class Step:
    """Plain descent, for one parameter."""

    def step_param(self, param, gradient):
        with torch.no_grad():
            param -= 0.1 * gradient


def then_optimizer(model):
    """The optimizer runs in what is attached to the hook's future, for each bucket."""
    hook = optimizer_overlap_hooks._hook_then_optimizer(
        default_hooks.allreduce_hook, optimizer_overlap_hooks._OptimizerHookState(Step())
    )
    model.register_comm_hook(None, hook)


HOOKS = {
    "allreduce": registered(default_hooks.allreduce_hook),
    "fp16": registered(default_hooks.fp16_compress_hook),
    "bf16": registered(default_hooks.bf16_compress_hook),
    "fp16_around": registered(
        kept(default_hooks.fp16_compress_wrapper(powerSGD_hook.powerSGD_hook)), power_sgd()
    ),
    "bf16_around": registered(
        kept(default_hooks.bf16_compress_wrapper(powerSGD_hook.powerSGD_hook)), power_sgd()
    ),
    "per_tensor": registered(
        kept(quantization_hooks.quantization_pertensor_hook), lambda: dist.group.WORLD
    ),
    "per_channel": registered(
        kept(quantization_hooks.quantization_perchannel_hook), lambda: dist.group.WORLD
    ),
    "power_sgd": registered(
        kept(powerSGD_hook.powerSGD_hook), power_sgd(matrix_approximation_rank=1)
    ),
    "power_sgd_2": registered(
        kept(powerSGD_hook.powerSGD_hook), power_sgd(matrix_approximation_rank=2)
    ),
    "batched_power_sgd": registered(kept(powerSGD_hook.batched_powerSGD_hook), power_sgd()),
    "local_sgd": registered(post_localSGD_hook.post_localSGD_hook, local_sgd),
    "noop": registered(debugging_hooks.noop_hook),
    "builtin": builtin(dist.BuiltinCommHookType.ALLREDUCE),
    "builtin_fp16": builtin(dist.BuiltinCommHookType.FP16_COMPRESS),
    "then_optimizer": then_optimizer,
}


def train(name, rank, buckets, steps=8):
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(20, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Linear(64, 3)
    )
    model = DistributedDataParallel(model, bucket_cap_mb=0.004 if buckets == "many" else 25)
    HOOKS[name](model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(100 + rank)
    losses = []
    for _ in range(steps):
        x = torch.randn(16, 20)
        loss = torch.nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        if name != "then_optimizer":
            optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        losses.append(total.item())
    return losses


def each_hook(buckets):
    def run(rank, n):
        for name in HOOKS:
            try:
                losses = train(name, rank, buckets)
            except AssertionError:  # from one of PyTorch's hooks, which does not support these shapes
                print(name, "AssertionError", flush=True)
                continue
            print(name, *(f"{loss:.9g}" for loss in losses), flush=True)

    return run


PROGRAMS = {"one_bucket": each_hook("one"), "many_buckets": each_hook("many")}


if __name__ == "__main__":
    main(PROGRAMS, *sys.argv[1:])
