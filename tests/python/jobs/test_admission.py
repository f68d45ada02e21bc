"""Newcomers to a running job, from Python and by the command."""

import os
import subprocess
import sys

import pytest
from helpers import ROOT, threads
from processes import run_job

import hocket
from hocket._command import find_command

WORKS = """
import os, signal, sys
import numpy as np
import hocket

comm = hocket.init()
old = 0 if comm.newcomers else comm.size
while True:
    try:
        if old and comm.rank == 1 and comm.size == old:
            os.kill(os.getpid(), signal.SIGKILL)
        total = float(comm.all_reduce(np.array(comm.rank + 1.0)))
        if comm.newcomers:
            break
    except (hocket.PeerDied, hocket.Aborted):
        comm = comm.admit(patience=60)
assert total == sum(range(comm.size + 1)), total
assert comm.all_gather_object(comm.rank) == list(range(comm.size))
print("rank", comm.rank, "of", comm.size, "newcomers", comm.newcomers, flush=True)
"""


def test_a_spare_takes_the_place_of_a_dead_rank(tmp_path):
    door = f"spare-{os.getpid()}"
    environment = {**os.environ, "HOCKET_DOOR": door}
    spare = subprocess.Popen(
        [find_command(), "run", "--join", door, "-n", "1", "--", sys.executable, "-c", WORKS],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    job = subprocess.run(
        [find_command(), "run", "--keep-going", "-n", "3", "--", sys.executable, "-c", WORKS],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        timeout=240,
    )
    said, _ = spare.communicate(timeout=240)
    assert job.returncode == 0, job.stdout
    assert spare.returncode == 0, said
    assert "rank 1 of 3 newcomers (1,)" in said
    for rank in (0, 2):
        assert f"rank {rank} of 3 newcomers (1,)" in job.stdout


GROWS = """
import subprocess, sys
import numpy as np
import hocket

comm = hocket.init(join=sys.argv[1]) if len(sys.argv) > 1 else hocket.init()
if len(sys.argv) == 1:
    first = comm.rank == 0
    if first:
        children = [subprocess.Popen([sys.executable, __file__, comm.door]) for _ in range(2)]
    comm = comm.admit(2, patience=60)
assert comm.size == 4 and comm.newcomers == (2, 3), (comm.size, comm.newcomers)
assert comm.all_reduce(np.array(1)) == 4
sub = comm.split(comm.rank % 2)
assert sub.all_reduce(np.array(comm.rank)) == sum(range(comm.rank % 2, 4, 2))
comm.barrier()
if len(sys.argv) == 1 and first:
    assert [child.wait() for child in children] == [0, 0]
print("grown", comm.rank, flush=True)
"""


def test_a_job_grows_by_processes_that_a_rank_starts(tmp_path):
    program = tmp_path / "grows.py"
    program.write_text(GROWS)
    job = run_job(2, program)
    assert job.returncode == 0, job.stdout
    assert job.stdout.count("grown") == 4, job.stdout


STAYS_EMPTY = """
import os, signal, subprocess, sys
import numpy as np
import hocket

if len(sys.argv) > 1:
    comm = hocket.init(join=sys.argv[1])
else:
    comm = hocket.init()
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        comm.barrier()
    except (hocket.PeerDied, hocket.Aborted):
        comm = comm.rebuild()
    assert comm.size == 3 and comm.world_ranks == (0, 2, 3), comm.world_ranks
    place = comm.world_ranks[comm.rank]
    for _ in range(2):  # as many steps as the program likes, with an empty place
        assert comm.all_gather_object(place) == [0, 2, 3]
        comm = comm.rebuild()
        assert comm.world_ranks == (0, 2, 3), comm.world_ranks
    if place == 0:
        child = subprocess.Popen([sys.executable, __file__, comm.door])
    comm = comm.admit(patience=60)
    assert comm.rank == place
assert comm.newcomers == (1,) and comm.world_ranks == (0, 1, 2, 3), comm.world_ranks
assert comm.all_reduce(np.array(comm.rank)) == 6
if len(sys.argv) == 1 and place == 0:
    assert child.wait() == 0
print("filled", comm.rank, flush=True)
"""


def test_a_place_stays_empty_until_somebody_takes_it(tmp_path):
    program = tmp_path / "empty.py"
    program.write_text(STAYS_EMPTY)
    done = run_job(4, program, before=("--keep-going",))
    assert done.stdout.count("filled") == 4, done.stdout


def test_init_of_a_process_that_nobody_takes_in():
    with pytest.raises(hocket.RendezvousError, match="has taken this process in at unix:.*0.2 s"):
        hocket.init(join=f"nobody-{os.getpid()}", timeout=0.2)


@pytest.mark.parametrize("place", [{"rank": 0, "size": 1}, {"address": "unix:x"}])
def test_join_and_a_place_exclude_each_other(place):
    with pytest.raises(hocket.InvalidArgument, match="join and a rank"):
        hocket.init(join="x", **place)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"newcomers": -1}, "newcomers is -1"),
        ({"newcomers": 1.5}, "newcomers"),
        ({"patience": -1}, "patience"),
        ({"keep_ranks": "yes"}, "keep_ranks"),
        ({"deadline": "soon"}, "deadline"),
    ],
)
def test_a_refused_argument_is_told(arguments, words):
    comm = hocket.init(rank=0, size=1)
    with pytest.raises((hocket.InvalidArgument, TypeError), match=words):
        comm.admit(**arguments)
    comm = comm.rebuild()
    assert comm.barrier() is None


def test_threads_take_nobody_in():
    def body(comm):
        with pytest.raises(hocket.InvalidArgument, match="threads"):
            comm.admit()
        with pytest.raises(hocket.InvalidArgument, match="threads"):
            comm.door

    threads(2, body)


@pytest.mark.parametrize("n, victim", [(2, 1), (3, 0)])
def test_the_example_replaces_a_dead_rank(n, victim):
    example = ROOT / "examples" / "python" / "newcomers.py"
    job = run_job(n, example, "--kill", str(victim), before=("--keep-going",))
    assert job.returncode == 0, job.stdout
    assert f"{n} ranks found 2.99" in job.stdout, job.stdout


def test_the_new_world_keeps_the_deadline_and_the_old_one_has_ended():
    comm = hocket.init(rank=0, size=1)
    comm.deadline = 77
    made = comm.admit(0)
    assert made.deadline == 77 and made.barrier() is None
    with pytest.raises(hocket.InvalidArgument, match="rebuilt"):
        comm.rebuild()
