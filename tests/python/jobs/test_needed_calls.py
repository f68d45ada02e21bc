"""The errors of a lost rank name the call that needed it."""

import sys

import hocket_command
import pytest

RANK = """
import os, sys
import numpy as np
import hocket

comm = hocket.init(timeout=60)
comm.barrier()
if comm.rank == 1:
    os._exit(3)
x = np.zeros(10)
try:
    {call}
except hocket.PeerDied as error:
    print("told", error.rank, error.status.operation, " ".join(str(error).split()), flush=True)
"""

# The call, the operation as the error has it, and its place in the sentence.
CALLS = [
    ("comm.all_reduce(x)", "all_reduce", "while it was needed in all_reduce #2 on world"),
    ("comm.broadcast(x, root=1)", "broadcast", "while it was needed in broadcast #2 on world"),
    ("comm.barrier()", "barrier", "while it was needed in barrier #2 on world"),
    ("comm.all_reduce_async(x).wait()", "all_reduce", "while it was needed in all_reduce #2 on world"),
    ("comm.intra_node", "intra_node", "intra_node #2 on world; the first use of intra_node or inter_node"),
    ("comm.inter_node", "inter_node", "inter_node #2 on world; the first use of intra_node or inter_node"),
    ("comm.recv(x, 1)", "", "while it was needed in rank 0's recv of float64[10] from rank 1 tag 0 on world"),
]


@pytest.mark.parametrize("call, operation, place", CALLS, ids=[call for call, _, _ in CALLS])
def test_the_call_that_needed_a_lost_rank_is_named(call, operation, place):
    done = hocket_command.run("run", "-n", 2, "--keep-going", "--", sys.executable, "-c",
                              RANK.format(call=call))
    told = [line for line in done.stdout.splitlines() if "told" in line]
    assert len(told) == 1, (done.stdout, done.stderr)
    assert f"told 1 {operation} " in told[0] and place in told[0], told
    assert "rank 1 (pid " in told[0] and "exited with code 3" in told[0], told
