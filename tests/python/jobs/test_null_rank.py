"""Messages to and from NULL_RANK, as threads, between processes, between pretended hosts, over
MPI.
"""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import threads
from processes import PACKAGE, run_job, run_over_mpi

import hocket

# `python -c PROGRAM HOSTS ENGINE...`: on as many pretended hosts; 0 for the one there is.
PROGRAM = """
import os, sys
sys.path.insert(0, os.environ["WHERE"])
hosts = int(sys.argv[1])
if hosts:
    os.environ["HOCKET_HOST"] = f"{int(os.environ['HOCKET_RANK']) % hosts}/"
import hocket
from test_null_rank import pass_along, say_nothing
comm = hocket.init(engines=sys.argv[2:] or None)
pass_along(comm)
say_nothing(comm)
print(f"rank {comm.rank} is done\\n", end="")
"""


def pass_along(comm):
    """A row of ranks without ends that meet, in each way a message can be sent; no `if`."""
    n, rank = comm.size, comm.rank
    before, after = comm.grid((n,)).shift(0)
    assert before == (rank - 1 if rank > 0 else hocket.NULL_RANK)
    assert after == (rank + 1 if rank < n - 1 else hocket.NULL_RANK)
    for count in (3, 50_000):  # short ones and long ones travel by different ways
        x = np.arange(count) + 1000.0 * rank
        wanted = np.arange(count) + 1000.0 * before if rank > 0 else np.full(count, -1.0)
        told = hocket.Received(before, 4, count if rank > 0 else 0)

        out = np.full(count, -1.0)
        sent = comm.send_async(x, after, tag=4)
        assert comm.recv(out, before, tag=4) == told
        sent.wait()
        assert np.array_equal(out, wanted)

        out = np.full(count, -1.0)
        work = comm.recv_async(out, before, tag=4)
        comm.send(x, after, tag=4)
        assert work.wait() is out and work.received == told and work.test()
        assert np.array_equal(out, wanted)

        out = np.full(count, -1.0)
        assert comm.send_recv(x, after, out, before) is out
        assert np.array_equal(out, wanted)

        out = np.full(count, -1.0)
        comm.exchange([(x, after)], [(out, before)])
        assert np.array_equal(out, wanted)

        out = np.full((count, 2), -1.0)[:, 0]  # a column
        comm.exchange([(x, after), (x, hocket.NULL_RANK)], [(out, before)])
        assert np.array_equal(out, wanted)

    comm.send_object({"rank": rank}, after)
    found = comm.recv_object(before, tag=0)
    assert found == ({"rank": before} if rank > 0 else None, before, 0)


def say_nothing(comm):
    """A call with NULL_RANK waits for no rank, but other wrong arguments are still refused."""
    x, nobody = np.arange(4.0), hocket.NULL_RANK
    comm.send(x, nobody)
    comm.exchange([(x, nobody)], [(x, nobody)])
    assert comm.recv(x, nobody, tag=7, deadline=0.001) == hocket.Received(nobody, 7, 0)
    assert comm.send_recv(x, nobody, x) is x
    assert np.array_equal(x, np.arange(4.0))
    for wrong, words in [
        (lambda: comm.send_recv(x, nobody), "NULL_RANK"),
        (lambda: comm.send(x, nobody, tag=-1), "tag"),
        (lambda: comm.send(x, -3), "destination is -3"),
        (lambda: comm.recv(x, -3), "source is -3"),
        (lambda: comm.broadcast(x, root=nobody), "root"),
        (lambda: comm.exchange([(x, nobody)], [], tag=-1), "tag is -1"),
    ]:
        with pytest.raises(hocket.InvalidArgument, match=words):
            wrong()
    comm.barrier()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_as_threads(n):
    def body(comm):
        pass_along(comm)
        say_nothing(comm)

    threads(n, body)


def test_of_a_communicator_that_has_ended():
    def body(comm):
        comm.abort("enough")
        for send in (lambda x: comm.send(x, hocket.NULL_RANK),
                     lambda x: comm.exchange([(x, hocket.NULL_RANK)], [])):
            with pytest.raises(hocket.Aborted, match="enough"):
                send(np.zeros(1))

    threads(1, body)


def environment():
    return {"WHERE": os.pathsep.join([str(Path(__file__).parent)]), "PYTHONPATH": os.pathsep.join(
        [str(PACKAGE), *(path for path in sys.path if path)])}  # fmt: skip


def require_all(output):
    for rank in range(3):
        assert f"rank {rank} is done" in output, output


@pytest.mark.parametrize("hosts", [0, 2, 3])
def test_between_processes(hosts):
    job = run_job(3, "-c", PROGRAM, hosts, env=environment())
    assert job.returncode == 0, job.stdout
    require_all(job.stdout)


@pytest.mark.parametrize("launcher", ["openmpi", "mpich"])
def test_over_mpi(launcher):
    require_all(run_over_mpi(launcher, 3, "-c", PROGRAM, 0, "mpi", **environment()))
