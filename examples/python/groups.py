"""A grid of ranks: sums along rows and columns.   hocket run -n 4 -- python examples/python/groups.py"""

import numpy as np

import hocket

with hocket.init() as comm:
    width = max(w for w in range(1, comm.size + 1) if comm.size % w == 0 and w * w <= comm.size)
    row = comm.split(color=comm.rank // width)
    column = comm.split(color=comm.rank % width)
    x = np.array(comm.rank)
    along_row = int(row.all_reduce(x.copy()))
    along_column = int(column.all_reduce(x.copy()))
    assert along_row == sum(row.world_ranks) and along_column == sum(column.world_ranks)

    # The sum of the rows' sums is the sum of all.
    assert column.all_reduce(np.array(along_row)) == sum(range(comm.size))
    if comm.rank == 0:
        print(f"a grid of {column.size} x {row.size} ranks")
