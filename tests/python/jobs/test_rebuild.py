"""Going on with the ranks that are left, from Python."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from helpers import ROOT, threads
from processes import run_job, with_package

import hocket
from hocket._command import find_command


def run_on(n, *arguments, options=("--keep-going",)):
    return run_job(n, *arguments, before=options)


SURVIVES = """
import os, signal, sys
import numpy as np
import hocket

comm = hocket.init()
me, victims = comm.rank, [int(v) for v in sys.argv[1].split(",")]
n = comm.size
comm.barrier()
while comm.size > n - len(victims):
    try:
        if me in victims:
            os.kill(os.getpid(), signal.SIGKILL)
        while True:
            comm.all_reduce(np.ones(100))
    except (hocket.PeerDied, hocket.Aborted):
        comm = comm.rebuild(timeout=30)
left = [r for r in range(n) if r not in victims]
assert list(comm.world_ranks) == left and left[comm.rank] == me, (comm.world_ranks, me)
assert comm.epoch >= 1 and comm.name == f"world~{comm.epoch}"
total = comm.all_reduce(np.array(me))
assert total == sum(left), total
assert comm.all_gather_object({"rank": me}) == [{"rank": r} for r in left]
print("survived", me, flush=True)
"""


@pytest.mark.parametrize("n, victims", [(2, [0]), (4, [2]), (4, [0, 3]), (5, [4, 1, 2])])
def test_the_living_go_on(n, victims):
    job = run_on(n, "-c", SURVIVES, ",".join(map(str, victims)))
    assert job.returncode == 0, job.stdout
    assert job.stdout.count("survived") == n - len(victims), job.stdout
    assert job.stdout.count("SIGKILL") >= 1, job.stdout


MANY = """
import os, signal, sys
import numpy as np
import hocket

comm = hocket.init()
me, n = comm.rank, comm.size
for victim in range(n - 1, 0, -1):
    # More than half of the GiB that a rank has: what the dead ones held must have come back.
    array = comm.symmetric.empty((640 << 20) // 8, "float64")
    array[:100] = me  # the rest takes no memory
    rows = comm.split(color=0)  # a group more that the dead rank is in
    comm.all_reduce(np.ones(10))
    try:
        if me == victim:
            os.kill(os.getpid(), signal.SIGKILL)
        while True:
            comm.all_reduce(np.ones(100))
    except (hocket.PeerDied, hocket.Aborted):
        comm = comm.rebuild(timeout=30)
    assert (np.asarray(array)[:100] == me).all()
    del array, rows
assert comm.size == 1
print("went on", flush=True)
"""


def test_memory_that_the_dead_held_comes_back():
    job = run_job(5, "-c", MANY, before=["--keep-going", "--env", "HOCKET_SEGMENT_GIB=1"])
    assert job.returncode == 0 and job.stdout.count("went on") == 1, job.stdout


def test_a_job_ends_with_its_first_failure_unless_it_is_to_go_on():
    job = run_on(3, "-c", SURVIVES, "1", options=())
    assert job.returncode == 137, job.stdout
    job = run_on(2, "-c", "import sys; sys.exit(7)")
    assert job.returncode == 7, job.stdout  # no rank succeeded


def test_the_example_survives():
    job = run_on(4, ROOT / "examples" / "python" / "rebuild.py", "--kill", "2")
    assert job.returncode == 0, job.stdout
    assert "with ranks [0, 1, 3]" in job.stdout and "3 ranks found y = 3.0" in job.stdout, job.stdout


def test_the_task_farm_survives_a_killed_worker():
    job = run_on(4, ROOT / "examples" / "python" / "task_farm.py", "--kill", "2")
    assert job.returncode == 0, job.stdout
    assert "going on with ranks [0, 1, 3]" in job.stdout, job.stdout
    assert "1229 primes, the last is 9973" in job.stdout, job.stdout


FROM_ANYBODY = """
import os, signal, sys, time
import numpy as np
import hocket

comm = hocket.init()
comm.barrier()
if comm.rank == 2:
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGKILL)
if comm.rank == 1:
    time.sleep(60)
try:
    {call}
except hocket.PeerDied as error:
    assert error.rank == 2, error
    print("told of rank 2", flush=True)
finally:
    print("checkpoint", flush=True)
os._exit(0)
"""

RECEIVES = {
    "recv": "comm.recv(np.zeros(3))",
    "recv_async": "comm.recv_async(np.zeros(3)).wait()",
    "recv_object": "comm.recv_object()",
    "probe": "comm.probe()",
    "any tag": "comm.recv(np.zeros(3), tag=hocket.ANY_TAG)",
}


@pytest.mark.parametrize("call", RECEIVES)
def test_a_receive_from_anybody_is_told_of_a_death_before_the_job_ends(call):
    job = run_on(3, "-c", FROM_ANYBODY.format(call=RECEIVES[call]), options=())
    assert job.returncode == 137, job.stdout
    assert "told of rank 2" in job.stdout and "checkpoint" in job.stdout, job.stdout


def test_errors_name_who_is_missing():
    release = threading.Barrier(3)

    def rank(comm):
        if comm.rank == 1:
            release.wait(30)
            comm = comm.rebuild(timeout=30)
            return comm.epoch
        with pytest.raises(hocket.DeadlineExceeded) as error:
            comm.rebuild(timeout=0.1)
        assert error.value.missing == (1,)
        assert "rank 1" in str(error.value) and "rebuild" in str(error.value)
        release.wait(30)
        again = comm.rebuild(timeout=30)
        with pytest.raises(hocket.InvalidArgument, match="rebuilt already"):
            comm.rebuild()
        with pytest.raises(hocket.Aborted, match="rebuild"):
            comm.barrier()
        return again.epoch

    assert threads(3, rank) == [1, 1, 1]


def test_who_comes_too_late_is_told():
    release = threading.Event()

    def rank(comm):
        if comm.rank != 2:
            comm = comm.rebuild(timeout=0.1, exclude_missing=True)
            total = comm.all_reduce(np.array(comm.rank + 1))
            release.set()
            return list(comm.world_ranks), int(total)
        release.wait(30)
        with pytest.raises(hocket.RendezvousError, match="rank 2 came too late"):
            comm.rebuild()
        return None

    assert threads(3, rank) == [([0, 1], 3), ([0, 1], 3), None]


def test_arguments():
    def rank(comm):
        with pytest.raises(TypeError):
            comm.rebuild(1, True)
        with pytest.raises((TypeError, ValueError)):
            comm.rebuild(timeout="soon")
        assert comm.epoch == 0
        return comm.rebuild().epoch

    assert threads(2, rank) == [1, 1]


def test_a_stopped_rank_is_counted_out(tmp_path):
    program = """
import os, sys, time
import numpy as np
import hocket
comm = hocket.init()
comm.barrier()
if comm.rank == 1:
    open(sys.argv[1] + ".tmp", "w").write(str(os.getpid()))
    os.rename(sys.argv[1] + ".tmp", sys.argv[1])
    try:
        while True:
            comm.barrier(timeout=60)
    except hocket.Error:
        pass
    try:
        comm.rebuild()
    except hocket.RendezvousError as error:
        print("told", error, flush=True)
    sys.exit()
while True:
    try:
        while True:
            comm.barrier(timeout=0.5)
    except hocket.DeadlineExceeded:
        pass
    comm = comm.rebuild(timeout=0.5, exclude_missing=True)
    break
assert comm.size == 2 and comm.all_reduce(np.array(1)) == 2
print("left", flush=True)
"""
    file = tmp_path / "pid"
    job = subprocess.Popen(
        [find_command(), "run", "-n", "3", "--", sys.executable, "-c", program, str(file)],
        env=with_package(), stdin=subprocess.DEVNULL,
        stdout=open(tmp_path / "out", "w"), stderr=subprocess.STDOUT)
    try:
        while not file.exists():
            assert job.poll() is None
            time.sleep(0.01)
        pid = int(file.read_text())
        os.kill(pid, signal.SIGSTOP)
        while (tmp_path / "out").read_text().count("left") < 2:
            assert job.poll() is None, (tmp_path / "out").read_text()
            time.sleep(0.01)
        os.kill(pid, signal.SIGCONT)
        assert job.wait(40) == 0, (tmp_path / "out").read_text()
    finally:
        job.kill()
    assert "came too late" in (tmp_path / "out").read_text()


def test_the_loss_of_the_store_harms_nobody():
    """Without a launcher, rank 0 serves the store. Here rank 0 dies."""
    from processes import run_by_hand

    program = """
import os, signal, sys
import numpy as np
import hocket
comm = hocket.init(rank=int(sys.argv[1]), size=3, address=sys.argv[2])
comm.barrier()
if comm.rank == 0:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    while True:
        comm.barrier()
except hocket.PeerDied:
    comm = comm.rebuild()
for i in range(3):
    assert comm.all_reduce(np.array(i)) == 2 * i
    comm = comm.rebuild()
print("epoch", comm.epoch)
"""
    outputs = run_by_hand(3, program)
    assert sum("epoch 4" in str(output) for output in outputs) == 2, outputs
