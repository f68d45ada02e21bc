"""Memory that peers can reach.   hocket run -n 4 -- python examples/python/symmetric_memory.py"""

import numpy as np

import hocket

with hocket.init() as comm:
    # A NumPy array on every rank; collectives on it copy nothing.
    a = comm.symmetric.empty((512, 512), "float32")
    a[:] = comm.rank + 1
    comm.all_reduce(a)
    assert (a == comm.size * (comm.size + 1) / 2).all()

    # A neighbour's array, as local memory. Calls order the writes and the reads.
    halo = comm.symmetric.empty(8, "int64")
    neighbour = (comm.rank + 1) % comm.size
    comm.symmetric.peer(halo, neighbour)[:] = comm.rank
    comm.barrier()
    assert np.all(halo == (comm.rank - 1) % comm.size)
    if comm.rank == 0:
        print(f"every one of {comm.size} ranks found its neighbour's numbers in its own memory")
