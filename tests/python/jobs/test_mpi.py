"""Under the mpirun of Open MPI and of MPICH: as launchers, and as an engine."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from processes import PACKAGE, mpirun, with_package

LAUNCHERS = ["openmpi", "mpich"]


def shim(name):
    """The engine's part for this MPI, where hocket was built with it."""
    found = [*PACKAGE.glob(f"../lib/libhocket_mpi_{name}.so"),
             *PACKAGE.glob(f"**/libhocket_mpi_{name}.so")]
    return found[0] if found else None


def run(name, n, program, *arguments, **environment):
    job = subprocess.Popen(
        [*mpirun(name, n), sys.executable, "-c", program, *map(str, arguments)],
        env=with_package(**environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        output, _ = job.communicate(timeout=55)
    except subprocess.TimeoutExpired:
        ranks = states_of_children(job.pid)
        job.kill()
        output, _ = job.communicate()
        # On a busy machine Open MPI's mpirun may stay for ever where ranks ended without MPI_Finalize.
        assert set(ranks) == {"Z"}, (ranks, output)
    return subprocess.CompletedProcess(job.args, job.returncode, output)


def states_of_children(pid):
    """Returns each child's state letter from /proc; "Z" has ended."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] for child in children]


PROGRAM = """
import sys
import numpy as np
import hocket
comm = hocket.init(engines=sys.argv[1:] or None)
n, rank = comm.size, comm.rank
x = np.arange(1000.0) * (rank + 1)
comm.all_reduce(x)
assert (x == np.arange(1000.0) * (n * (n + 1) // 2)).all()
small = np.full(5, rank, "float16")
comm.all_reduce(small, op="avg")
assert small[0] == np.float16((n - 1) / 2), small
odd = comm.split(color=rank % 2)
y = np.array([rank, 100], "int8")
odd.all_reduce(y)
members = range(rank % 2, n, 2)
assert y[0] == sum(members) and y[1] == np.int8(100 * len(members) % 256 - 256
    if 100 * len(members) % 256 > 127 else 100 * len(members) % 256), y
works = [comm.all_gather_async(np.array([rank, i])) for i in range(4)]
for i, work in enumerate(works):
    assert (work.wait().reshape(n, 2) == [[r, i] for r in range(n)]).all()
try:
    comm.all_reduce(x[:3] if rank == 0 else x[:4])
except hocket.Mismatch as error:
    print("mismatch told")
print("right", flush=True)
"""


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_mpirun_is_a_launcher(launcher, n):
    job = run(launcher, n, PROGRAM)
    assert job.returncode == 0 and job.stdout.count("right") == n, job.stdout
    assert job.stdout.count("mismatch told") == (n if n > 1 else 0), job.stdout


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_the_engine(launcher, n):
    if shim(launcher) is None:
        pytest.skip(f"hocket was built without {launcher}")
    program = PROGRAM.split("try:")[0] + 'print("right", flush=True)\n'
    job = run(launcher, n, program, "mpi")
    assert job.returncode == 0 and job.stdout.count("right") == n, job.stdout


TOO_LARGE = """
import numpy as np
import hocket
comm = hocket.init(engines=["mpi"])
try:
    comm.all_reduce(np.zeros(2**31, "int8"))
except hocket.InvalidArgument as error:
    assert "it has mpi; join with more engines, or split the array" in str(error), error
x = np.ones(3)
comm.all_reduce(x)
assert (x == comm.size).all()
print("right", flush=True)
"""


def test_an_array_that_mpi_cannot_count_is_refused():
    if shim("openmpi") is None:
        pytest.skip("hocket was built without Open MPI")
    job = run("openmpi", 2, TOO_LARGE)
    assert job.returncode == 0 and job.stdout.count("right") == 2, job.stdout


LATE = """
import time
import numpy as np
import hocket
comm = hocket.init(engines=["mpi"])
x = np.ones(1000)
comm.all_reduce(x)
if comm.rank == 0:
    time.sleep(1)
try:
    comm.all_reduce(x, timeout=0.2)
    print("no error")
except hocket.Error as error:
    print(type(error).__name__, flush=True)
before = x.copy()
time.sleep(1.5)  # who leaves MPI like this takes the others along
assert (x == before).all()
"""


def test_a_late_rank_is_told_and_nothing_is_written_afterwards():
    if shim("mpich") is None:
        pytest.skip("hocket was built without mpich")
    job = run("mpich", 2, LATE)
    assert job.stdout.count("DeadlineExceeded") == 2, job.stdout


REFUSED = """
import time
import numpy as np
import hocket
comm = hocket.init(engines=["mpi"])
n, rank = comm.size, comm.rank
for turn in range(12):
    who, late = turn % n, turn // 2 % n
    x = np.arange(100.0) + 1000 * rank + turn
    before = x.copy()
    if rank == late:  # who refuses comes last, or first, or in between
        time.sleep(0.02)
    try:
        if rank != who:
            comm.all_reduce(x, op="max" if turn % 2 else "sum")
        elif turn % 3:
            comm.all_reduce(x, out=np.empty(3), op="max" if turn % 2 else "sum")
        else:
            comm.all_reduce(np.array(["text"]))
        print("no error", flush=True)
    except (hocket.InvalidArgument, TypeError) as error:
        assert rank == who or f"rank {who} refused" in str(error), error
    assert (x == before).all()
    # Of the same kind and size as the refused call, so that MPI could take the one for the other.
    total = comm.all_reduce(np.arange(100.0) * (rank + 1 + turn), out=np.empty(100))
    assert (total == np.arange(100.0) * (n * (n + 1) // 2 + n * turn)).all(), (turn, total)
    parts = comm.all_gather(np.array([rank, turn])).reshape(n, 2)
    assert (parts == [[r, turn] for r in range(n)]).all(), (turn, parts)
comm.barrier()
print("right", flush=True)
"""


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_calls_after_a_refused_one_are_right_by_the_engine(launcher, n):
    if shim(launcher) is None:
        pytest.skip(f"hocket was built without {launcher}")
    job = run(launcher, n, REFUSED)
    assert job.returncode == 0 and job.stdout.count("right") == n, job.stdout
    assert "no error" not in job.stdout, job.stdout


LEFT = """
import numpy as np
import hocket
comm = hocket.init(engines=["mpi"])
rank = comm.rank
for turn in range(8):
    group = comm.duplicate()
    comm.barrier()
    # What it gives goes to ranks that close the group meanwhile, under MPI's number of it.
    if rank == 1:
        stray = np.full(4, -1.0)
        try:
            if turn % 2:
                group.all_gather(stray, timeout=0.3)
                print("no error")
            else:
                group.gather(stray, root=0)
        except (hocket.Aborted, hocket.DeadlineExceeded):
            pass
    group.close()
    comm.barrier()
    pair = comm.new_group([0, 2])
    for i in range(6 if rank != 1 else 0):
        mine = np.full(4, 100.0 * turn + 10 * i + rank)
        got = pair.all_gather(mine) if turn % 2 else pair.gather(mine, root=0)
        if got is not None:
            want = [[100.0 * turn + 10 * i + r] * 4 for r in (0, 2)]
            assert (np.reshape(got, (2, 4)) == want).all(), (turn, i, got)
    pair.close()
print("right", flush=True)
comm.barrier()
"""


MADE_OF_OTHERS = """
import sys
import numpy as np
import hocket
comm = hocket.init(engines=["mpi"])
n, odd = comm.size, comm.rank == 1
call = {
    "split": lambda: comm.split("none" if odd else 0),
    "new_group": lambda: comm.new_group([0, 0] if odd else [0, 1]),
    "reproducible_sum": lambda: comm.reproducible_sum(5 if odd else np.ones((1, 4)), np.ones(4)),
    "all_gather_v": lambda: comm.all_gather_v(5 if odd else np.ones(2), counts=[2] * n),
    "all_to_all_v": lambda: comm.all_to_all_v(np.ones(2 * n), 5 if odd else [2] * n),
    "all_reduce_coalesced": lambda: comm.all_reduce_coalesced(5 if odd else [np.ones(40_000)] * 2),
    "operator": lambda: comm.all_reduce("no array" if odd else np.ones(9), op=hocket.Operator(np.add)),
    "argmin": lambda: comm.argmin("no array" if odd else np.ones(9)),
}[sys.argv[1]]
try:
    call()
except hocket.InvalidArgument:
    pass
try:
    for i in range(3):
        x = np.full(50_000, comm.rank + i)
        comm.all_reduce(x)
        assert (x == n * (n - 1) // 2 + n * i).all(), x
    end = "went on"
except hocket.Error as error:
    end = "was told" if "make the communicator anew" in str(error) or "cannot go on" in str(error) else str(error)
print(f"rank {comm.rank} {end}\\n", end="", flush=True)
"""


@pytest.mark.parametrize(
    "call, end",
    [
        ("split", "was told"),
        ("new_group", "was told"),
        ("reproducible_sum", "was told"),
        ("all_gather_v", "was told"),
        ("all_to_all_v", "went on"),
        ("all_reduce_coalesced", "went on"),
        ("operator", "went on"),
        ("argmin", "went on"),
    ],
)
def test_no_refused_call_is_taken_for_another(call, end):
    """A call made of other calls is recorded under its own name, if that is known; else the
    others are.
    """
    if shim("openmpi") is None:
        pytest.skip("hocket was built without Open MPI")
    job = run("openmpi", 3, MADE_OF_OTHERS, call)
    for rank in range(3):
        assert f"rank {rank} {end}" in job.stdout, job.stdout


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_what_comes_for_a_group_that_is_closed_is_not_taken_for_another(launcher):
    if shim(launcher) is None:
        pytest.skip(f"hocket was built without {launcher}")
    job = run(launcher, 3, LEFT)
    assert job.stdout.count("right") == 3 and "no error" not in job.stdout, job.stdout


GROUPS = """
import numpy as np
import hocket
comm = hocket.init(engines=["mpi"])
for turn in range(2500):
    group = comm.duplicate()
    if turn % 100 == 0:
        assert group.all_reduce(np.ones(1))[0] == comm.size
    group.close()
print("right", flush=True)
comm.barrier()
"""


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_groups_come_and_go_more_often_than_mpi_has_numbers(launcher):
    if shim(launcher) is None:
        pytest.skip(f"hocket was built without {launcher}")
    job = run(launcher, 2, GROUPS)
    assert job.stdout.count("right") == 2, job.stdout


DEATH = """
import os, signal
import numpy as np
import hocket
comm = hocket.init(engines=["mpi"])
x = np.ones(100_000)
try:
    for turn in range(1000):
        comm.all_reduce(x)
        if turn == 3 and comm.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
except hocket.PeerDied as error:
    assert error.rank == 1, error
again = comm.rebuild(timeout=40)
assert list(again.world_ranks) == [0, 2]
for count in (1, 1000, 300_000):
    y = np.arange(count, dtype="float64") * (again.rank + 1)
    again.all_reduce(y)
    assert (y == np.arange(count) * 3).all()
alone = again.split(color=again.rank)
assert alone.all_reduce(np.array([7.0]))[0] == 7
again.barrier()
print("rebuilt", flush=True)
again.barrier()
"""


DIFFERENT = """
import numpy as np
import hocket
world = hocket.init(engines=["mpi"])
for count in 1000, 20_000:
    with world.duplicate(timeout=20) as comm:
        try:
            comm.all_gather(np.ones(count + comm.rank))
            comm.barrier()
        except hocket.Mismatch as error:
            print("told", flush=True)
    assert world.all_reduce(np.array(1)) == world.size
world.barrier()
print("right", flush=True)
"""


def test_parts_that_do_not_fit_are_a_mismatch_and_end_no_process():
    """Otherwise Open MPI would report them on its world, whose default is to end the process."""
    if shim("openmpi") is None:
        pytest.skip("hocket was built without Open MPI")
    job = run("openmpi", 2, DIFFERENT)
    # MPI_Finalize is left out where calls have been given up; then mpirun says 1.
    assert job.stdout.count("told") == 4 and job.stdout.count("right") == 2, job.stdout


def test_after_a_death_the_others_go_on_without_mpi():
    """Under Open MPI, with an option to let the others live: Hydra always ends them."""
    if shim("openmpi") is None:
        pytest.skip("hocket was built without openmpi")
    job = run("openmpi", 3, DEATH, OMPI_MCA_orte_abort_on_non_zero_status="0")
    assert job.stdout.count("rebuilt") == 2, job.stdout


def test_without_mpi_it_says_so():
    job = subprocess.run(
        [sys.executable, "-c", 'import hocket; hocket.init(engines=["mpi"])'],
        env={**{k: v for k, v in os.environ.items() if "MPI" not in k},
             "PYTHONPATH": str(PACKAGE)},
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert "no mpirun started it" in job.stderr, job.stderr


JOINED = """
import numpy as np
from mpi4py import MPI
import hocket
world = MPI.COMM_WORLD
pair = world.Split(world.Get_rank() // 2, -world.Get_rank())
comm = hocket.init(mpi=pair, engines=["mpi"])
assert comm.rank == pair.Get_rank() and comm.size == pair.Get_size()
x = np.array([10.0 ** world.Get_rank()])
comm.all_reduce(x)
mine = [r for r in range(world.Get_size()) if r // 2 == world.Get_rank() // 2]
assert x[0] == sum(10.0 ** r for r in mine), x
print("right", flush=True)
"""


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_the_engine_on_a_communicator_of_mpi4py(launcher, tmp_path):
    pytest.importorskip("mpi4py")
    if shim(launcher) is None:
        pytest.skip(f"hocket was built without {launcher}")
    for library in Path("/usr/lib").glob("*/libmpich.so.12"):
        (tmp_path / "libmpi.so.12").symlink_to(library)
    job = run(launcher, 3, JOINED, MPI4PY_MPIABI=launcher, LD_LIBRARY_PATH=str(tmp_path))
    assert job.returncode == 0 and job.stdout.count("right") == 3, job.stdout


SMALL = """
import numpy as np
import hocket
comm = hocket.init()
x = np.array([10.0 ** comm.rank])
comm.all_reduce(x)
assert comm.size == 2 and x[0] == 11
print("right", flush=True)
"""


def test_hydra_introduces_ranks_that_it_takes_for_several_hosts_ranks():
    if shutil.which("mpirun.mpich") is None:
        pytest.skip("mpirun.mpich is not installed")
    job = subprocess.run(
        ["mpirun.mpich", "-launcher", "fork", "-hosts", "localhost,127.0.0.1", "-n", "2",
         sys.executable, "-c", SMALL],
        env=with_package(),
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert job.stdout.count("right") == 2, job.stdout + job.stderr


def test_pmix_introduces_ranks_that_it_takes_for_several_hosts_ranks(tmp_path, request):
    if shutil.which("mpirun.openmpi") is None:
        pytest.skip("mpirun.openmpi is not installed")
    # Instead of ssh: "there" is here. Open MPI's daemons, one a host, would both make one folder;
    # paths of sockets in it are short.
    folder = tempfile.TemporaryDirectory(prefix="hk")
    request.addfinalizer(folder.cleanup)
    agent = tmp_path / "agent"
    agent.write_text(
        f'#!/bin/sh\nshift\nTMPDIR=$(mktemp -d -p {folder.name}) exec sh -c "$*"\n'
    )
    agent.chmod(0o755)
    job = subprocess.run(
        ["mpirun.openmpi", "--allow-run-as-root", "--mca", "plm", "rsh", "--mca", "plm_rsh_agent",
         str(agent), "--mca", "oob_tcp_if_include", "lo", "-x", "PYTHONPATH", "-H",
         "node-a:1,node-b:1", "-n", "2", sys.executable, "-c", SMALL],
        env=with_package(),
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert job.stdout.count("right") == 2, job.stdout + job.stderr
