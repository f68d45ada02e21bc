"""Computing while arrays travel.   hocket run -n 4 -- python examples/python/overlap.py"""

import numpy as np

import hocket

LAYERS = 6

with hocket.init() as comm:
    random = np.random.default_rng(comm.rank)
    activations = random.standard_normal((256, 256)).astype("float32")
    works = []
    for layer in range(LAYERS):
        gradient = activations @ activations.T / (layer + 1)
        works.append(comm.all_reduce_async(gradient, op="avg"))  # leave `gradient` alone until done
    gradients = [work.wait() for work in works]  # each Work's result is its array
    for gradient in gradients:
        # The average over all ranks is the same on every rank.
        assert np.array_equal(comm.broadcast(gradient.copy()), gradient)
    if comm.rank == 0:
        print(f"{LAYERS} averages over {comm.size} ranks, under way while the next was computed")
