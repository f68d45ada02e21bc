"""Who is there, and one sum.   hocket run -n 4 -- python examples/python/hello.py"""

import numpy as np

import hocket

with hocket.init() as comm:
    x = np.full(4, comm.rank, "float32")
    comm.all_reduce(x)  # in place, sum
    assert (x == sum(range(comm.size))).all()
    print(f"rank {comm.rank} of {comm.size}: the ranks add up to {x[0]:g}", flush=True)
