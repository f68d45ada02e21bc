"""Functions that fork, and programs that leave the ends of their processes to the kernel."""

import subprocess
import sys

import pytest
from processes import run_job, with_package
FORKS = """
import functools, os, sys
import hocket
from hocket.futures import Executor

def forks(how, *_):
    # The result of a process that this function forks is awaited by nobody.
    child = os.fork()
    if child == 0:
        if how == "raises":
            raise ValueError("in the child")
        if how == "exits":
            sys.exit(3)
        return "of the child"
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def in_cluster(how):
    with hocket.Cluster(2) as cluster:
        return cluster.run(functools.partial(on_one, how))

def on_one(how, comm):
    return forks(how) if comm.rank == 1 else comm.rank

def in_executor(how):
    with Executor(2) as executor:
        list(executor.map(abs, range(500)))  # short tasks come in batches
        return list(executor.map(functools.partial(forks, how), range(2)))

def in_threads(how):
    return hocket.run_threads(lambda comm: on_one(how, comm), 2)

def in_pool(how):
    with hocket.DevicePool(2) as pool:
        return pool.map(functools.partial(forks, how), range(2))

def in_spawn(how):
    return hocket.spawn(functools.partial(on_one, how), 2)

if __name__ == "__main__":
    print(globals()[sys.argv[1]](sys.argv[2]), flush=True)
"""


@pytest.mark.parametrize("how, code", [("returns", 0), ("raises", 1), ("exits", 3)])
@pytest.mark.parametrize("where", ["in_cluster", "in_executor", "in_threads", "in_pool", "in_spawn"])
def test_a_process_that_a_function_forks_ends_with_it(tmp_path, where, how, code):
    program = tmp_path / "forks.py"
    program.write_text(FORKS)
    done = subprocess.run([sys.executable, program, where, how], env=with_package(), timeout=50,
                          capture_output=True, text=True)
    expected = [code, code] if where in ("in_executor", "in_pool") else [0, code]
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == str(expected), done.stdout + done.stderr


IN_HOCKET = """
import os, random, sys, time
if "hosts" in sys.argv:
    os.environ["HOCKET_HOST"] = os.environ["HOCKET_RANK"] + "/"
import numpy as np
import hocket

comm = hocket.init(deadline=30)
codes = []

def forks(how):
    child = os.fork()
    if child == 0:
        if how == "raises":
            raise ValueError("in the child")
        if how == "exits":
            sys.exit(3)
        return
    until = time.monotonic() + 10
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        assert time.monotonic() < until, "the child does not end"
        time.sleep(0.002)
    codes.append(os.waitstatus_to_exitcode(ended[1]))

def add(a, b):
    forks(sys.argv[2])
    return a + b

if sys.argv[1] == "operator":
    total = comm.all_reduce(np.ones(100), op=hocket.Operator(add))
    assert (total == comm.size).all()
elif sys.argv[1] == "callback":
    work = comm.all_reduce_async(np.ones(100))
    work.add_done_callback(lambda work: forks(sys.argv[2]))
    work.wait()
    while not codes:
        time.sleep(0.01)
else:  # the program forks while a call is under way
    group = comm.duplicate()
    for _ in range(15):
        work = group.all_reduce_async(np.ones(500_000))
        time.sleep(0.002 * random.random())
        forks("exits")
        work.wait()
comm.barrier()
print(f"codes {sorted(set(codes))}\\n", end="", flush=True)
"""


@pytest.mark.parametrize("hosts", ["host", "hosts"])
@pytest.mark.parametrize("where, how, code", [("operator", "returns", 0), ("operator", "raises", 1),
                                              ("operator", "exits", 3), ("callback", "returns", 0),
                                              ("callback", "raises", 1), ("callback", "exits", 3),
                                              ("program", "exits", 3)])
def test_a_process_that_is_forked_within_a_call_ends(where, how, code, hosts):
    job = run_job(2, "-c", IN_HOCKET, where, how, hosts)
    assert job.returncode == 0, job.stdout
    told = [line.split(" ", 1)[1] for line in job.stdout.splitlines() if " codes " in line]
    assert len(told) == 2 and f"codes [{code}]" in told, job.stdout
    assert set(told) <= {f"codes [{code}]", "codes []"}, job.stdout  # one rank may have no part of an array


IGNORES = """
import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # as a shell's `trap '' CHLD` leaves it to its programs
import hocket
from hocket.futures import Executor

def rank(comm):
    return comm.rank

def exits(comm):
    if comm.rank == 1:
        os._exit(3)
    comm.barrier()

if __name__ == "__main__":
    if sys.argv[1] == "cluster":
        with hocket.Cluster(2) as cluster:
            assert cluster.run(rank) == [0, 1]
            cluster.resize(1)
            assert cluster.run(rank) == [0]
    if sys.argv[1] == "death":
        with hocket.Cluster(2) as cluster:
            try:
                cluster.run(exits)
            except hocket.PeerDied as error:
                assert "ignores SIGCHLD" in str(error), error
            cluster.restart()
            assert cluster.run(rank) == [0, 1]
    if sys.argv[1] == "executor":
        with Executor(2) as executor:
            assert list(executor.map(abs, [-1, -2, -3])) == [1, 2, 3]
    if sys.argv[1] == "spawn":
        assert hocket.spawn(rank, 2) == [0, 1]
    print("ends", flush=True)
"""


@pytest.mark.parametrize("case", ["cluster", "death", "executor", "spawn"])
def test_a_program_that_ignores_sigchld(tmp_path, case):
    program = tmp_path / "ignores.py"
    program.write_text(IGNORES)
    done = subprocess.run([sys.executable, program, case], env=with_package(), timeout=50,
                          capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "ends\n"), done.stderr
