"""Objects from rank to rank between processes: over shared memory, between pretended hosts, over MPI."""


import numpy as np
import pytest
from helpers import threads
from processes import run_job, run_over_mpi

import hocket

# `python -c PROGRAM HOSTS ENGINE...`: on as many pretended hosts; 0 for the one there is.
PROGRAM = """
import os, sys
import numpy as np
hosts = int(sys.argv[1])
if hosts:
    os.environ["HOCKET_HOST"] = f"{int(os.environ['HOCKET_RANK']) % hosts}/"
import hocket
comm = hocket.init(engines=sys.argv[2:] or None)
n, rank = comm.size, comm.rank
assert len(set(comm.hosts)) == (hosts or 1), comm.hosts
to, before = (rank + 1) % n, (rank - 1) % n

def equal(found, wanted):
    if isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(equal(found[key], wanted[key]) for key in wanted)
    if isinstance(wanted, np.ndarray):
        return found.dtype == wanted.dtype and np.array_equal(found, wanted)
    return type(found) is type(wanted) and found == wanted

def objects(rank):  # one message, about as large as one can be, and two messages
    return [
        None,
        {"rank": rank, "list": [1, 2.5, "x" * rank], "array": np.arange(4.0) + rank},
        *(bytes([rank]) * size for size in range(225, 245)),
        np.arange(400_000.0) + rank,
    ]

# Around a ring, from a named source and from any source.
for tag, (mine, wanted) in enumerate(zip(objects(rank), objects(before))):
    for source in (before, hocket.ANY_SOURCE):
        if rank == 0:
            comm.send_object(mine, to, tag=tag)
        found = comm.recv_object(source, tag=tag)
        if rank != 0:
            comm.send_object(mine, to, tag=tag)
        assert (found.source, found.tag) == (before, tag), found[1:]
        assert equal(found.object, wanted), (tag, source)

# All send to rank 0 at once: the parts of one are not taken for those of another.
if rank == 0:
    came = [comm.recv_object(tag=99) for _ in range(2 * (n - 1))]
    assert sorted(one.source for one in came) == sorted([*range(1, n)] * 2)
    for one in came:
        assert equal(one.object, np.full(50_000, one.source)), one.source
else:
    for _ in range(2):
        comm.send_object(np.full(50_000, rank), 0, tag=99)
comm.barrier()

# What is refused is not sent.
for wrong in [{"destination": n}, {"destination": -1}, {"destination": to, "tag": -1}]:
    try:
        comm.send_object(rank, **wrong)
    except hocket.InvalidArgument as error:
        assert list(wrong)[-1] in str(error), error
    else:
        raise AssertionError(wrong)
comm.barrier()
print(f"rank {rank} is done\\n", end="")  # in one piece, as MPICH's mpirun mixes pieces
"""

# Rank 1 dies while the others wait for its object.
DEATH = """
import os, signal, sys
hosts = int(sys.argv[1])
if hosts:
    os.environ["HOCKET_HOST"] = f"{int(os.environ['HOCKET_RANK']) % hosts}/"
import hocket
comm = hocket.init()
comm.barrier()
if comm.rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    comm.recv_object(1 if comm.rank == 0 else hocket.ANY_SOURCE, deadline=30)
except hocket.PeerDied as error:
    assert "rank 1 " in str(error), error
    print(f"rank {comm.rank} was told\\n", end="")
"""


def require_all(output, n, text="is done"):
    for rank in range(n):
        assert f"rank {rank} {text}" in output, output


@pytest.mark.parametrize("hosts", [0, 2, 3])
def test_between_processes(hosts):
    job = run_job(3, "-c", PROGRAM, hosts)
    assert job.returncode == 0, job.stdout
    require_all(job.stdout, 3)


@pytest.mark.parametrize("launcher", ["openmpi", "mpich"])
def test_over_mpi(launcher):
    require_all(run_over_mpi(launcher, 3, "-c", PROGRAM, 0, "mpi"), 3)


@pytest.mark.parametrize("hosts", [0, 3])
def test_a_sender_that_dies(hosts):
    job = run_job(3, "-c", DEATH, hosts)
    for rank in [0, 2]:
        assert f"rank {rank} was told" in job.stdout, job.stdout


def test_what_is_announced_takes_no_memory():
    def body(comm):
        forged = np.zeros(32, "uint64")
        forged[:2] = 0x32746A626F6B6368, 1 << 46  # an object, of so many bytes
        other = comm.duplicate()
        if comm.rank == 1:
            other.send(forged.view("uint8"), 0, tag=3)
        else:
            with pytest.raises(hocket.DeadlineExceeded):  # and no MemoryError
                other.recv_object(1, tag=3, deadline=0.3)
        comm.barrier()

    threads(2, body)
