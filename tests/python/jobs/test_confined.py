"""Jobs where the system gives little: calls that it refuses, few descriptors, no place to write,
namespaces of processes, limits of memory. Each works, or says what is missing; no death is lost."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import free_address, with_package

from hocket._command import find_command

COMMAND = Path(find_command()).resolve()
REFUSING = COMMAND.parent.parent / "refusing" / "refusing"

# Uses what there is, and then tells of the death of rank 1, of which rank 0 has to hear.
PROGRAM = """
import os, sys
import numpy as np
import hocket

def work(comm):
    n = comm.size
    for count in (1, 100_000):
        x = np.arange(count, dtype="float64") + comm.rank
        comm.all_reduce(x)
        assert np.array_equal(x, n * np.arange(count) + n * (n - 1) / 2)

def all_of_it(comm):
    work(comm)
    group = comm.duplicate()
    work(group)
    group.close()
    array = comm.symmetric.empty(1000, "float64")
    comm.barrier()

def hear_of_death(comm):
    try:
        while True:
            comm.barrier()
    except hocket.PeerDied as error:
        print("told of", error.rank, flush=True)
"""

DIES = PROGRAM + """
comm = hocket.init(timeout=40)
all_of_it(comm)
if comm.rank == 1:
    os.kill(os.getpid(), 9)
hear_of_death(comm)
"""

WORKS = PROGRAM + """
comm = hocket.init(timeout=40)
all_of_it(comm)
print("done", comm.rank, flush=True)
"""


def run(command, **options):
    """Runs it to its end; its output, standard error among it, as text."""
    environment = with_package(**options.pop("env", {}))
    return subprocess.run(
        [*map(str, command)],
        env={name: value for name, value in environment.items() if value is not None},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=50,
        **options,
    )


def job(ranks, program, *before):
    return [COMMAND, "run", "-n", ranks, "--no-prefix", *before, "--", sys.executable, "-c", program]


def expect_works(done, ranks):
    assert done.returncode == 0, done.stdout
    told = sorted(line for line in done.stdout.splitlines() if line.startswith("done"))
    assert told == [f"done {rank}" for rank in range(ranks)], done.stdout


# --- Calls that are refused -----------------------------------------------------------------------


def refusing(*calls):
    if not REFUSING.exists():
        pytest.skip(f"{REFUSING} is not built")
    return [REFUSING, *calls, "--"]


# Calls of the launcher too; tests/multiprocess/refused_calls_test.cc covers all calls of a rank.
@pytest.mark.parametrize("call", ["futex_waitv", "pidfd_open", "close_range"])
def test_without_a_call_a_job_works_and_hears_of_a_death(call):
    done = run([*refusing(f"{call}=EPERM"), *job(3, DIES)])
    assert done.stdout.count("told of 1") == 2, done.stdout
    assert done.returncode == 128 + signal.SIGKILL


@pytest.mark.parametrize("call", ["memfd_create", "set_robust_list"])
def test_without_a_call_that_nothing_stands_in_for_it_is_named(call):
    done = run([*refusing(f"{call}=EPERM"), *job(2, WORKS)])
    assert done.returncode != 0
    assert re.search("memfd" if call == "memfd_create" else call, done.stdout), done.stdout
    alone = run([*refusing(f"{call}=EPERM"), sys.executable, "-c", "import hocket; hocket.init()"])
    assert call in alone.stdout, alone.stdout


@pytest.mark.parametrize(("call", "stops"), [("memfd_create", True), ("pidfd_open", False),
                                             ("futex_waitv", False), ("membarrier", False)])
def test_doctor_says_what_is_refused(call, stops):
    done = run([*refusing(f"{call}=EPERM"), COMMAND, "doctor"])
    name = {"memfd_create": "sealed memfd", "pidfd_open": "pidfd"}.get(call, call)
    assert re.search(rf"{name} does not work \(Operation not permitted\)", done.stdout), done.stdout
    assert (done.returncode != 0) == stops, done.stdout


def test_a_system_that_lets_no_memory_file_be_executed():
    """The setting vm.memfd_noexec=2 refuses all that does not say so of itself."""
    setting = Path("/proc/sys/vm/memfd_noexec")
    if not setting.exists():
        pytest.skip("this kernel has no vm.memfd_noexec")
    space = in_namespace("--pid", "--fork", "--mount-proc")
    script = f'echo 2 >{setting} || exit 77; exec "$@"'
    done = run([*space, "sh", "-c", script, "sh", *job(2, WORKS)])
    if done.returncode == 77:
        pytest.skip("the setting cannot be made here")
    expect_works(done, 2)


# --- Limits ---------------------------------------------------------------------------------------


def test_few_descriptors_are_enough():
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    expect_works(run(job(4, WORKS), preexec_fn=limit), 4)


def test_a_limit_of_address_space_is_heeded():
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

    expect_works(run(job(2, WORKS), preexec_fn=limit), 2)


def memory_cgroup(limit):
    """The folder of a new cgroup with that limit, or why there is none."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    for number, controllers, path in (line.split(":", 2) for line in lines):
        first = "memory" in controllers.split(",")
        base = Path("/sys/fs/cgroup" + ("/memory" if first else "") + path)
        if not first and number != "0":
            continue
        folder = base / f"hocket-test-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError as error:
            return None, f"no memory cgroup can be made: {error}"
        try:
            (folder / ("memory.limit_in_bytes" if first else "memory.max")).write_text(str(limit))
            return folder, ""
        except OSError as error:
            folder.rmdir()
            return None, f"no memory cgroup can be made: {error}"
    return None, "there are no memory cgroups"


def test_a_rank_that_its_cgroup_ends_is_told():
    folder, why = memory_cgroup(256 << 20)
    if folder is None:
        pytest.skip(why)
    greedy = PROGRAM + f"""
comm = hocket.init(timeout=40)
all_of_it(comm)
if comm.rank == 1:
    with open("{folder}/cgroup.procs", "w") as procs:
        procs.write(str(os.getpid()))
    taken = []
    while True:
        taken.append(np.ones(4 << 20))
hear_of_death(comm)
"""
    try:
        done = run(job(3, greedy))
        assert done.stdout.count("told of 1") == 2, done.stdout
        assert done.returncode == 128 + signal.SIGKILL
    finally:
        for _ in range(100):
            try:
                folder.rmdir()
                break
            except OSError:
                time.sleep(0.05)


# --- Places ---------------------------------------------------------------------------------------


def in_namespace(*kinds):
    """`unshare KINDS`, where this process may."""
    tool = shutil.which("unshare")
    if tool is None:
        pytest.skip("there is no `unshare`")
    tried = subprocess.run([tool, *kinds, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"this process makes no namespaces: {tried.stderr.strip()}")
    return [tool, *kinds]


READ_ONLY = """
set -e
mount -t tmpfs -o size=64k none "$1"
head -c 1000000 /dev/zero >"$1/all" 2>/dev/null || true
export TMPDIR="$1"
shift
mount -o remount,bind,ro /
exec "$@"
"""


def confined(folder):
    """Nowhere to write: a full TMPDIR, a root that cannot be written to."""
    tried = [*in_namespace("--mount"), "sh", "-c", READ_ONLY, "sh", folder]
    if run([*tried, "true"]).returncode != 0:
        pytest.skip("the root cannot be made read-only here")
    return tried


def test_a_full_tmpdir_a_read_only_root_and_no_home_are_no_hindrance(tmp_path):
    done = run([*confined(tmp_path), *job(3, WORKS)], env={"HOME": None})
    expect_works(done, 3)


@pytest.mark.parametrize("what", ["trace", "audit"])
def test_a_file_that_finds_no_room_says_so(tmp_path, what):
    done = run([*confined(tmp_path), *job(2, WORKS, f"--{what}", tmp_path / "kept")])
    assert done.returncode != 0
    assert re.search(rf"HOCKET_{what.upper()}: cannot write .*rank-.*No space left", done.stdout), done.stdout


def test_a_flight_record_that_finds_no_room_hides_no_error(tmp_path):
    done = run([*confined(tmp_path), *job(3, DIES)], env={"HOCKET_DUMP_DIR": str(tmp_path)})
    assert done.stdout.count("told of 1") == 2, done.stdout
    assert "no flight record: cannot write" in done.stdout


# --- Namespaces of processes ----------------------------------------------------------------------

IN_PIECES = PROGRAM + """
comm = hocket.init(rank=int(sys.argv[1]), size=3, address=sys.argv[2], timeout=40)
all_of_it(comm)
print("ready", os.getpid(), flush=True)
hear_of_death(comm)
comm = comm.rebuild()
all_of_it(comm)
print("done", comm.rank, flush=True)
"""


def child_of(pid):
    """The first child of a process, by its number here."""
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def processes_in_top(pid):
    """The processes of the ranks of the job that has this process, as `hocket top` sees them."""
    done = subprocess.run(
        [COMMAND, "top", "--json", "--seconds", "0.1"],
        env=with_package(),
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    (job,) = [each for each in json.loads(done.stdout)["jobs"] if pid in each["pids"]]
    by_rank = [rank["pid"] for rank in sorted(job["ranks"], key=lambda rank: rank["rank"])]
    assert sorted(job["pids"]) == sorted(by_rank)
    return by_rank


def test_ranks_in_their_own_namespaces_of_processes():
    """Numbers of processes mean something else in each, or nothing: here each rank is process 1."""
    space = in_namespace("--pid", "--fork", "--mount-proc", "--kill-child")
    address = free_address()
    environment = with_package(HOCKET_TRUST_NETWORK="1")
    ranks = [
        subprocess.Popen(
            [*space, sys.executable, "-c", IN_PIECES, str(rank), address],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(3)
    ]
    try:
        for rank in ranks:
            while not (line := rank.stdout.readline()).startswith("ready"):
                assert line, "a rank has ended"
            assert line == "ready 1\n"
        processes = [child_of(rank.pid) for rank in ranks]
        assert processes_in_top(processes[0]) == processes
        os.kill(processes[1], signal.SIGKILL)
        for number in (0, 2):
            output, _ = ranks[number].communicate(timeout=45)
            assert "told of 1" in output, output
            assert f"done {number // 2}" in output, output
            assert ranks[number].returncode == 0
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
