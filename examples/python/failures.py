"""What an error says.   hocket run -n 4 -- python examples/python/failures.py"""

import numpy as np

import hocket

with hocket.init() as comm:
    # A refused argument is told to everybody, and the communicator goes on.
    wrong = np.zeros((4, 4))[:, 0] if comm.rank == comm.size - 1 else np.zeros(4)
    try:
        comm.all_reduce(wrong)
    except hocket.InvalidArgument as error:
        if comm.rank == 0:
            print(f"refused: {error}")
    assert comm.all_reduce(np.array(1)) == comm.size

    # If ranks make different calls, all learn which rank made which. The group is lost, the world
    # is not.
    group = comm.duplicate()
    try:
        group.all_reduce(np.zeros(3), op="max" if comm.rank == 0 else "sum")
        group.barrier()
        assert comm.size == 1
    except hocket.Mismatch as error:
        if comm.rank == 0:
            print(f"mismatch: {error}")
    assert comm.all_reduce(np.array(1)) == comm.size
