"""Training that survives the death of a rank.

hocket run -n 4 --keep-going -- python examples/python/rebuild.py --kill 2
"""

import argparse
import os
import signal

import numpy as np

import hocket

parser = argparse.ArgumentParser()
parser.add_argument("--kill", type=int, default=-1, help="the rank that dies in step 20")
parser.add_argument("--steps", type=int, default=60)
options = parser.parse_args()

comm = hocket.init()
me = comm.rank  # in the world, for good; comm.rank changes

# Fits a straight line to noisy points. After a death the shards are divided among the ranks that
# are left.
random = np.random.default_rng(5)
x = random.uniform(-1, 1, 4000)
y = 3 * x - 2 + random.normal(0, 0.1, x.size)

weights, step = np.zeros(2), 0
while step < options.steps:
    try:
        if me == options.kill and step == 20:
            os.kill(os.getpid(), signal.SIGKILL)
        mine = slice(comm.rank, None, comm.size)
        error = weights[0] * x[mine] + weights[1] - y[mine]
        gradient = np.array([(error * x[mine]).sum(), error.sum()])
        comm.all_reduce(gradient)
        weights, step = weights - 0.5 / x.size * gradient, step + 1
    except (hocket.PeerDied, hocket.Aborted, hocket.DeadlineExceeded) as failure:
        while True:  # until nobody is lost in between
            comm = comm.rebuild(deadline=30, exclude_missing=True)
            try:
                # Some may have ended the step that failed, others not: the furthest one counts.
                steps = comm.all_gather_object(step)
                furthest = steps.index(max(steps))
                weights, step = comm.broadcast_object((weights, step), root=furthest)
                break
            except hocket.PeerDied:
                pass
        if comm.rank == 0:
            print(f"{failure}\ngoing on at step {step} with ranks {list(comm.world_ranks)}")

assert np.allclose(weights, [3, -2], atol=0.05), weights
if comm.rank == 0:
    print(f"{comm.size} ranks found y = {weights[0]:.2f} x {weights[1]:+.2f}")
