"""`hocket run --audit` and `hocket trace --diff`: first differences, and infinities and NaN."""

import subprocess
import sys
from pathlib import Path

import pytest
from processes import BUILD, run_job, with_package

import hocket
from hocket._command import find_command

PROGRAM = """
import sys
import numpy as np
import hocket

call, culprit, place = (int(each) for each in sys.argv[1:4])
comm = hocket.init()
me, size = comm.rank, comm.size
half = comm.split(color=me % 2)
number = 0


def spoilt(array):
    # The call of this number is given one bit less or more on one rank.
    global number
    number += 1
    if number == call and me == culprit:
        array.reshape(-1).view(np.uint8)[place] ^= 4
    return array


for step in range(3):
    x = spoilt(np.arange(3000, dtype=np.float32) + me + step)
    total = comm.all_reduce(x)
    half.broadcast(spoilt(np.full(10, total[0] + step)), root=0)
    counts = [r + 1 for r in range(size)]
    comm.all_gather_v(spoilt(np.full(counts[me], me + step, np.int64)), counts=counts)
    comm.all_to_all_async(spoilt(np.arange(2.0 * size) + me)).wait()
    comm.prepare_all_reduce(spoilt(np.full(5, 1.0 + me)))()
    to, source = (me + 1) % size, (me - 1) % size
    comm.send_recv(spoilt(np.arange(7) * me), to, np.empty(7, int), source, tag=4)
    comm.all_gather_object({"step": step, "rank": me})
    comm.reproducible_sum(spoilt(np.full((1, 50), 1.5 + me)), np.empty(50))
"""

SILENT = """
import numpy as np
import hocket

comm = hocket.init()
x = np.ones(5000, np.float32)
comm.all_reduce(x)
if comm.rank == 1:
    x[4321] = np.nan
comm.all_reduce(x, op="max")
comm.all_reduce(x)
"""


def audited(tmp_path, name, program, *arguments, n=3):
    script = tmp_path / f"{name}.py"
    script.write_text(program)
    folder = tmp_path / name
    job = run_job(n, script, *arguments, before=["--audit", str(folder)])
    assert job.returncode == 0, job.stdout
    assert sorted(file.name for file in folder.iterdir()) == [f"rank-{r}.audit" for r in range(n)]
    return folder, job


def difference(a, b):
    return subprocess.run(
        [find_command(), "trace", "--diff", str(a), str(b)],
        capture_output=True,
        text=True,
        timeout=50,
    )


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return audited(tmp_path_factory.mktemp("audit"), "good", PROGRAM, 0, 0, 0)[0]


def test_two_runs_alike(good, tmp_path):
    again, _ = audited(tmp_path, "again", PROGRAM, 0, 0, 0)
    output = difference(good, again)
    assert output.returncode == 0, output.stdout
    assert "The runs do not differ." in output.stdout
    assert "not digested" not in output.stdout


# The number of the corrupted call in the program, its rank, a byte; then the parts of the message.
@pytest.mark.parametrize(
    ("number", "rank", "byte", "named", "where"),
    [
        (1, 2, 9000, "all_reduce #4 on world", "what rank 2 gave differs: elements 2048 to 2303"),
        (8, 0, 11999, "on world", "what rank 0 gave differs: elements 2816 to 2999"),
        (3, 1, 15, "all_gather_v", "what rank 1 gave differs: elements 0 to 1 "),
        (4, 2, 0, "all_to_all", "what rank 2 gave differs: elements 0 to 5 "),
        (5, 1, 39, "all_reduce", "what rank 1 gave differs: elements 0 to 4 "),
        (7, 1, 14, "reproducible_sum #", "what rank "),
        (6, 1, 8, "send to rank 2, tag 4, on world", "what rank 1 gave differs: elements 0 to 6 "),
    ],
)
def test_one_bit_of_one_rank_is_named(good, tmp_path, number, rank, byte, named, where):
    bad, _ = audited(tmp_path, "bad", PROGRAM, number, rank, byte)
    output = difference(good, bad)
    assert output.returncode == 1, output.stdout
    first, second, *rest = output.stdout.splitlines()
    assert first.startswith("The runs part in ") and named in first
    assert where in second
    if "all_reduce" in first:
        assert "  what came out of it differs on ranks 0, 1, 2" in rest
    if "all_to_all" in first:
        assert "  what came out of it differs on rank 0" in rest


def test_the_root_alone_of_a_group(good, tmp_path):
    bad, _ = audited(tmp_path, "bad", PROGRAM, 9, 0, 3)  # rank 0, the root of its half
    output = difference(good, bad).stdout
    assert "broadcast" in output.splitlines()[0]
    assert "what rank 0 gave differs: elements 0 to 9 " in output
    assert "  what came out of it differs on ranks 0, 2" in output


def test_other_calls_are_told(good, tmp_path):
    other = PROGRAM.replace("range(3):", "range(2):")
    shorter, _ = audited(tmp_path, "shorter", other, 0, 0, 0)
    output = difference(good, shorter)
    assert output.returncode == 1
    assert "rank 0 made it in the first run alone" in output.stdout
    larger, _ = audited(tmp_path, "larger", PROGRAM.replace("3000", "3001"), 0, 0, 0)
    output = difference(good, larger).stdout
    assert "The runs part in all_reduce #4 on world, all_reduce of float32, 11.7 KiB in" in output
    assert "in the second run rank 0 called all_reduce of float32" in output


def test_what_is_not_finite_is_named(tmp_path):
    folder, job = audited(tmp_path, "silent", SILENT, n=2)
    assert "element 4321 of what goes into all_reduce #2 of communicator world on rank 1 is " in (
        job.stdout
    )
    assert job.stdout.count("infinite or no number") == 2  # once a rank
    output = subprocess.run(
        [find_command(), "trace", str(folder)], capture_output=True, text=True, timeout=50
    )
    assert output.returncode == 0, output.stderr
    assert (
        "Infinite, or no number, for the first time: element 4321 of what rank 1 gave to "
        "all_reduce #2 on world"
    ) in output.stdout


def test_beside_a_trace_by_the_variable_alone(tmp_path):
    script = tmp_path / "silent.py"
    script.write_text(SILENT)
    folder = tmp_path / "both"
    before = ["--trace", str(folder), "--env", "HOCKET_AUDIT=1"]
    assert run_job(2, script, before=before).returncode == 0
    assert {file.suffix for file in folder.iterdir()} == {".audit", ".trace"}
    output = subprocess.run(
        [find_command(), "trace", str(folder)], capture_output=True, text=True, timeout=50
    ).stdout
    assert "2 ranks on 1 host" in output and "element 4321 of what rank 1 gave" in output


THREADS = """
import sys
import numpy as np
import hocket

def rank(comm):
    x = np.arange(5000.0) + comm.rank
    for step in range(4):
        if step == 2 and comm.rank == 1 and sys.argv[1] == "bad":
            x.view(np.uint8)[8 * 4000] ^= 16
        comm.all_reduce(x)

hocket.run_threads(rank, 2)  # whose files the next one's replace
hocket.run_threads(rank, 3)
"""


def test_ranks_that_are_threads(tmp_path):
    for name in "good", "bad":
        subprocess.run(
            [sys.executable, "-c", THREADS, name],
            env=with_package(HOCKET_AUDIT=str(tmp_path / name)),
            timeout=50,
            check=True,
        )
        files = sorted(file.name for file in (tmp_path / name).iterdir())
        assert files == [f"rank-{r}.audit" for r in range(3)]
    output = difference(tmp_path / "good", tmp_path / "bad")
    assert output.returncode == 1, output.stderr
    assert "The runs part in all_reduce #3 on world" in output.stdout
    assert "what rank 1 gave differs: elements 3968 to 4095 (1 of 40 blocks)" in output.stdout
    assert "  what came out of it differs on ranks 0, 1, 2" in output.stdout


def test_threads_of_ranks_keep_apart(tmp_path):
    program = THREADS.replace("hocket.run", "world = hocket.init()\nhocket.run", 1)
    program += "world.all_reduce(np.ones(3))\n"
    folder = tmp_path / "job"
    job = run_job(2, "-c", program, "good", before=["--audit", str(folder)])
    assert job.returncode == 0, job.stdout
    assert {file.name for file in folder.iterdir()} == {
        "rank-0.audit", "rank-1.audit", "threads-of-rank-0", "threads-of-rank-1"
    }
    for rank in range(2):
        threads = folder / f"threads-of-rank-{rank}"
        assert sorted(file.name for file in threads.iterdir()) == [
            f"rank-{r}.audit" for r in range(3)
        ]
    halves = difference(folder / "threads-of-rank-0", folder / "threads-of-rank-1")
    assert halves.returncode == 0 and "12 calls of ranks are equal." in halves.stdout
    assert difference(folder, folder).returncode == 0


SWITCHED = """
import sys
import numpy as np
import hocket

def calls(comm):
    assert not comm.audit
    other = comm.duplicate()
    for rubbish in (None, 1, "yes", []):
        try:
            comm.audit = rubbish
        except hocket.InvalidArgument as error:
            assert "audit is " in str(error) and not comm.audit
        else:
            raise AssertionError(rubbish)
    comm.audit = True
    assert comm.audit and not other.audit
    child = comm.split(color=0)  # does as its parent does
    assert child.audit
    x = np.arange(5.0) + comm.rank
    if comm.rank == 1 and sys.argv[1] == "bad":
        x[3] += 1
    for step in range(3):
        comm.all_reduce(x)
        other.all_reduce(x)
        child.broadcast(x, root=1)
    comm.all_reduce_async(x).wait()
    comm.audit = False
    comm.all_reduce(x)
    comm.audit = True
    comm.barrier()

if sys.argv[2] == "threads":
    hocket.run_threads(calls, 2)
else:
    calls(hocket.init())
"""


@pytest.mark.parametrize("ranks", ["processes", "threads"])
def test_of_one_communicator(tmp_path, monkeypatch, ranks):
    monkeypatch.delenv("HOCKET_AUDIT", raising=False)
    for name in "good", "bad":
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.chdir(folder)
        if ranks == "processes":
            job = run_job(2, "-c", SWITCHED, name, ranks)
            assert job.returncode == 0, job.stdout
        else:
            subprocess.run(
                [sys.executable, "-c", SWITCHED, name, ranks],
                env=with_package(),
                timeout=50,
                check=True,
            )
        files = sorted(file.name for file in (folder / "hocket-audit").iterdir())
        assert files == ["rank-0.audit", "rank-1.audit"]
    kept = [tmp_path / name / "hocket-audit" for name in ("good", "bad")]
    output = difference(*kept)
    assert output.returncode == 1, output.stderr
    assert "The runs part in all_reduce #" in output.stdout and "on world, " in output.stdout
    assert "what rank 1 gave differs: elements 0 to 4 (1 of 1 block" in output.stdout
    # Each rank has five calls of the world, three that the split makes of it, and three of the
    # child.
    same = difference(kept[0], kept[0])
    assert same.returncode == 0 and "22 calls of ranks are equal." in same.stdout


LEFT_OUT = """
import sys
import numpy as np
import hocket

comm = hocket.init()
assert comm.audit
own = comm.duplicate()
own.audit = False
for step in range(3):
    comm.all_reduce(np.arange(4.0))
    own.all_reduce(np.arange(4.0) + (sys.argv[1] == "bad"))
"""


def test_one_communicator_is_left_out(tmp_path):
    for name in "good", "bad":
        before = ["--audit", str(tmp_path / name)]
        job = run_job(2, "-c", LEFT_OUT, name, before=before)
        assert job.returncode == 0, job.stdout
    output = difference(tmp_path / "good", tmp_path / "bad")
    assert output.returncode == 0, output.stdout
    assert "The runs do not differ." in output.stdout


def test_nothing_to_compare(tmp_path):
    empty, _ = audited(tmp_path, "empty", "import hocket\nhocket.init()\n")
    output = difference(empty, empty)
    assert output.returncode == 2 and not output.stdout
    assert "no call of" in output.stderr


@pytest.mark.parametrize("contents", [None, b"", b"rubbish" * 1000])
def test_what_is_no_audit(good, tmp_path, contents):
    if contents is not None:
        (tmp_path / "rank-0.audit").write_bytes(contents)
    output = difference(good, tmp_path)
    assert output.returncode == 2
    assert ("no rank-N.audit" if contents is None else "rank-0.audit is") in output.stderr


SUPPORT = Path(__file__).parents[1] / "support"
GPUS = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import hocket
from fake_gpu import Array, Driver

driver = Driver()
comm = hocket.init(engines=[sys.argv[2]])
driver.use(comm.rank)
stream = driver.stream()
x = Array(driver, np.arange(2000.0) + comm.rank)
out = Array(driver, np.zeros(2000))
for step in range(4):
    if step == 2 and comm.rank == 1 and sys.argv[3] == "bad":
        x.host[1000] += 1e-9
    comm.all_reduce(x, out=out, stream=stream)
    comm.all_reduce(x, stream=stream)
    driver.synchronize(stream)
comm.barrier()
"""


@pytest.mark.skipif(not (BUILD / "fake_nccl").exists(), reason="this build has no fake driver")
@pytest.mark.parametrize("engine", ["shm", "nccl"])
def test_arrays_of_gpus(tmp_path, engine):
    nccl = BUILD / "fake_nccl" / "libnccl.so.2" if engine == "nccl" else "none"
    for name in "good", "bad":
        before = ["--audit", str(tmp_path / name)]
        job = run_job(2, "-c", GPUS, SUPPORT, engine, name, before=before,
                      env={"LD_LIBRARY_PATH": str(BUILD / "fake_cuda"),
                           "HOCKET_NCCL_LIBRARY": str(nccl)})
        assert job.returncode == 0, job.stdout
    output = difference(tmp_path / "good", tmp_path / "bad").stdout
    if engine == "nccl":
        assert "The runs do not differ." in output
        assert "16 of them with arrays that were not digested" in output
    else:
        assert "The runs part in all_reduce #6 on world" in output
        assert "what rank 1 gave differs: elements 896 to 1023 (1 of 16 blocks)" in output
        assert "what came out of it differs on ranks 0, 1" in output


@pytest.mark.parametrize("kind", ["audit", "trace"])
def test_a_smaller_job_leaves_nothing_of_a_larger_one(tmp_path, kind):
    script = tmp_path / "sum.py"
    script.write_text("import hocket, numpy as np\nhocket.init().all_reduce(np.ones(3))\n")
    folder = tmp_path / "folder"
    for n in (4, 2):
        job = run_job(n, script, before=[f"--{kind}", str(folder)])
        assert job.returncode == 0, job.stdout
        others = {folder / f"rank-x.{kind}", folder / f"notes.{kind}", folder / "rank-9.txt"}
        assert {*folder.iterdir()} - others == {folder / f"rank-{rank}.{kind}" for rank in range(n)}
        for other in others:
            other.touch()
    assert all(other.exists() for other in others)


def test_a_smaller_team_leaves_nothing_of_a_larger_one(tmp_path, monkeypatch):
    monkeypatch.setenv("HOCKET_AUDIT", str(tmp_path))
    for n in (4, 2):
        hocket.run_threads(lambda comm: comm.barrier(), n)
        assert {*tmp_path.iterdir()} == {tmp_path / f"rank-{rank}.audit" for rank in range(n)}
