"""Training in which a new process takes the place of a rank that dies.

hocket run -n 4 --keep-going -- python examples/python/newcomers.py --kill 2
"""

import argparse
import os
import signal
import subprocess
import sys

import numpy as np

import hocket

parser = argparse.ArgumentParser()
parser.add_argument("--kill", type=int, default=-1, help="the rank that dies in step 20")
parser.add_argument("--steps", type=int, default=60)
parser.add_argument("--join", help="the door of the job to join")
options = parser.parse_args()


def catch_up(comm, weights, step):
    """Gives all ranks the state of the furthest one; newcomers have step -1."""
    steps = comm.all_gather_object(step)
    return hocket.hand_over(comm, (weights, step), root=steps.index(max(steps)))


comm = hocket.init(join=options.join)
starts_at_once = not comm.newcomers
weights, step = np.zeros(2), 0 if starts_at_once else -1

# A straight line to be found in noisy points. Each rank has a shard.
random = np.random.default_rng(5)
x = random.uniform(-1, 1, 4000)
y = 3 * x - 2 + random.normal(0, 0.1, x.size)

has_caught_up = starts_at_once
children = []
while step < options.steps:
    try:
        if not has_caught_up:
            weights, step = catch_up(comm, weights, step)
            has_caught_up = True
            continue
        if starts_at_once and comm.rank == options.kill and step == 20:
            os.kill(os.getpid(), signal.SIGKILL)
        mine = slice(comm.rank, None, comm.size)
        error = weights[0] * x[mine] + weights[1] - y[mine]
        gradient = np.array([(error * x[mine]).sum(), error.sum()])
        comm.all_reduce(gradient)
        weights, step = weights - 0.5 / x.size * gradient, step + 1
    except (hocket.PeerDied, hocket.Aborted) as failure:
        size = comm.size
        comm = comm.rebuild()
        if comm.rank == 0:
            print(f"{failure}\ngoing on at step {step} with {comm.size} ranks and newcomers")
            for _ in range(size - comm.size):
                command = [sys.executable, __file__, "--join", comm.door]
                children.append(subprocess.Popen([*command, "--steps", str(options.steps)]))
        comm = comm.admit(size - comm.size, patience=60)
        has_caught_up = False

comm.barrier()
assert np.allclose(weights, [3, -2], atol=0.05), weights
if comm.rank == 0:
    print(f"{comm.size} ranks found {weights[0]:.3f} x + {weights[1]:.3f} in {step} steps")
for child in children:
    assert child.wait() == 0
