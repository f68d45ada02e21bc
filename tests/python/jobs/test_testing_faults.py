"""Random faults on ranks of tests: each is found, on the right rank, and nothing hangs.

As many as `--faults` says; 1,000 take minutes. `tools/faults/fault_table.py` makes a table of what
`--faults-log` has written.
"""

import json
import os
import pickle
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from helpers import ROOT

import hocket
from hocket import testing
from hocket._jobs.crew import Crew
from hocket.testing._processes import ProcessRun
from hocket.testing._runs import Limits
from hocket.testing._threads import ThreadRun

A_TEST = 10  # faults
KINDS = ["kill", "stop", "delay", "raise", "exit", "os exit", "crash", "leave", "sleep", "mismatch"]
OF_THREADS = ["raise", "exit", "leave", "sleep", "mismatch"]


class Fault:
    """A random fault, by the number of the case; the same on all ranks. A value."""

    def __init__(self, seed, kinds):
        chance = random.Random(seed)
        self.size = chance.randint(2, 4)
        self.kind = chance.choice(kinds)
        self.victim = chance.randrange(self.size)
        self.step = chance.randrange(6)
        self.after = chance.choice([0.0, chance.uniform(0, 0.02)])
        self.count = chance.choice([1, 1000, 100_000])
        self.calls = [chance.choice(["all_reduce", "barrier", "ring", "objects"]) for _ in range(8)]

    def __repr__(self):
        return f"{self.kind} on rank {self.victim} of {self.size} at {self.calls[self.step]}, {self.count}"


def call(comm, name, count):
    if name == "all_reduce":
        comm.all_reduce(np.ones(count))
    elif name == "barrier":
        comm.barrier()
    elif name == "ring":
        comm.send_recv(np.ones(count), (comm.rank + 1) % comm.size, source=(comm.rank - 1) % comm.size)
    else:
        comm.all_gather_object({"rank": comm.rank})


def strike(comm, fault):
    if fault.kind in ("kill", "stop"):
        getattr(testing, fault.kind)(fault.victim, after=fault.after)
    elif fault.kind == "delay":
        testing.delay(fault.victim, 0.05, after=fault.after)
    elif fault.kind == "raise":
        raise ValueError("of the victim")
    elif fault.kind == "exit":
        sys.exit(3)
    elif fault.kind == "os exit":
        os._exit(3)
    elif fault.kind == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif fault.kind == "sleep":
        time.sleep(4)  # far more than the others wait, on a busy machine too
    elif fault.kind == "mismatch":
        comm.all_reduce(np.ones(fault.count + 1, "float32"), op="max")


def body(comm, fault):
    """Makes the calls. The victim makes one of them with a fault."""
    comm.deadline = min(comm.deadline, 5)
    for step, name in enumerate(fault.calls):
        if step == fault.step and comm.rank == fault.victim:
            strike(comm, fault)
            if fault.kind == "leave":
                return
        call(comm, name, fault.count)
    # A rank that is killed or stopped while no other needs it is needed here, and its end is
    # awaited.
    if fault.kind in ("kill", "stop"):
        if comm.rank == fault.victim:
            time.sleep(10)
        comm.barrier(deadline=0.5 if fault.kind == "stop" else 5)


def as_a_test(member, rank, size, address, fault):
    """As `hocket.testing._member.run_test` does it; the survivors know what to expect."""
    from hocket.testing._member import injecting
    from hocket.testing._runs import now, summary_of

    member.comm = comm = hocket.init(rank=rank, size=size, address=address, timeout=30)
    try:
        with injecting(member), member.interruptible():
            if fault.kind in ("kill", "stop"):
                if fault.kind == "stop":
                    comm.deadline = 0.5
                wanted = {"kill": hocket.PeerDied, "stop": hocket.DeadlineExceeded}[fault.kind]
                # An Aborted is another's DeadlineExceeded or loss.
                with pytest.raises((wanted, hocket.Aborted)):
                    body(comm, fault)
            else:
                body(comm, fault)
            comm.close()
        return None
    except BaseException as error:
        try:
            comm.abort(summary_of(error))
            comm.close()
        except hocket.Error:
            pass
        return now(), None, summary_of(error), "", "error"
    finally:
        member.comm = None


def check(fault, ends):
    if fault.kind in ("kill", "stop", "delay"):
        assert ends is None, (fault, ends)
        return
    assert ends is not None, fault
    first = ends.first()
    if fault.kind in ("raise", "exit", "os exit", "crash", "sleep"):
        assert first.rank == fault.victim, (fault, ends)
        wanted = {"raise": "ValueError: of the victim", "exit": "SystemExit: 3",
                  "os exit": "exited with code 3", "crash": "SIGSEGV", "sleep": "did nothing"}
        assert wanted[fault.kind] in first.summary, (fault, ends)
    elif fault.kind == "mismatch":
        # A call does not match the messages that others wait for: none arrives.
        assert first.summary.startswith(("Mismatch", "DeadlineExceeded")), (fault, ends)
    else:  # it has left, and any rank that needs it reports that
        assert any(f"rank {fault.victim} " in end.summary for end in ends.ends), (fault, ends)


def try_one(place, seed, fault, run, log):
    """Writes the outcome to the log before it is judged here."""
    begun = time.monotonic()
    wrong = "it was not judged"
    try:
        check(fault, run())
        wrong = ""
    except AssertionError as error:
        wrong = str(error)
        raise
    finally:
        if log is not None:
            line = {"place": place, "seed": seed, "kind": fault.kind, "ranks": fault.size,
                    "seconds": time.monotonic() - begun, "at": time.time(), "wrong": wrong}
            with open(log, "a") as file:
                file.write(json.dumps(line) + "\n")


@pytest.fixture
def log(request):
    return request.config.getoption("--faults-log")


@pytest.fixture(scope="module")
def crew():
    crew = Crew()
    yield crew
    crew.close()


def pytest_generate_tests(metafunc):
    if "first" not in metafunc.fixturenames:
        return
    count = metafunc.config.getoption("--faults")
    metafunc.parametrize("first", range(0, count, A_TEST))


def test_faults_of_processes(crew, first, request, log):
    for seed in range(first, min(first + A_TEST, request.config.getoption("--faults"))):
        fault = Fault(seed, KINDS)
        task = pickle.dumps((as_a_test, (fault,)))
        run = ProcessRun(crew, fault.size, Limits(timeout=15), lambda _: None)
        try_one("processes", seed, fault, lambda run=run, task=task: run.run(task), log)


@pytest.mark.parametrize("seed", [51, 266, 377])
def test_rank_0_is_found_to_do_nothing(crew, seed):
    """Asking it for its calls kept it at work."""
    fault = Fault(seed, KINDS)
    assert (fault.kind, fault.victim) == ("sleep", 0)
    run = ProcessRun(crew, fault.size, Limits(timeout=15), lambda _: None)
    try_one("processes", seed, fault, lambda: run.run(pickle.dumps((as_a_test, (fault,)))), None)


def test_faults_of_threads(first, request, log):
    for seed in range(first, min(first + A_TEST, request.config.getoption("--faults"))):
        fault = Fault(10_000 + seed, OF_THREADS)
        run = ThreadRun(fault.size, lambda comm, fault=fault: body(comm, fault), Limits(timeout=15))
        try_one("threads", 10_000 + seed, fault, run.run, log)


def test_the_table_counts_what_was_wrong(tmp_path):
    log, page = tmp_path / "log", tmp_path / "page.md"
    page.write_text("before\n<!-- faults of tests -->\nold\n<!-- end -->\nbehind\n")
    lines = [("processes", "kill", 0.5, ""), ("processes", "sleep", 1.5, "no error"),
             ("threads", "sleep", 2.5, "")]
    log.write_text("".join(json.dumps({"place": place, "seed": i, "kind": kind, "ranks": 2,
                                       "seconds": seconds, "at": 86400.0 * i, "wrong": wrong}) + "\n"
                           for i, (place, kind, seconds, wrong) in enumerate(lines)) + '{"half')
    subprocess.run([sys.executable, ROOT / "tools/faults/fault_table.py", log, "--page", page], check=True)
    assert page.read_text() == """before
<!-- faults of tests -->
3 faults, 1 of them with something wrong. 1970-01-01 to 1970-01-03.

| fault | processes | threads | as it must be | median | longest |
| --- | --: | --: | --: | --: | --: |
| kill | 1 |  | 1 | 500 ms | 500 ms |
| sleep | 1 | 1 | 1 | 2.0 s | 2.5 s |
<!-- end -->
behind
"""
