"""Threads beside the thread that makes calls: one closes, one still runs when Python ends."""

import subprocess
import sys
import threading

import numpy as np
import pytest
from helpers import threads
from processes import run_job

import hocket

DAEMONS = """
import threading, time
import numpy as np, hocket
comm = hocket.init()
group, other = comm.duplicate(), comm.duplicate()
def work():
    while True:
        group.all_reduce(np.ones(1000))
def wait():
    other.recv(np.ones(3), source=1 - comm.rank)
for body in (work, wait):
    threading.Thread(target=body, daemon=True).start()
time.sleep(0.2)
comm.barrier()
"""


def test_daemon_threads_in_calls_do_not_break_the_end():
    """Python unwinds them when they want its lock back: no C++ survives that."""
    for _ in range(3):
        done = run_job(2, "-c", DAEMONS)
        assert "terminate" not in done.stdout and "Aborted" not in done.stdout, done.stdout
        assert done.returncode == 0, done.stdout


TOLD = """
import threading, time
import hocket
from hocket._waiting.ends import Ends
comm = hocket.init()
begun = threading.Event()
class Slow:
    def complete(self):
        begun.set()
        time.sleep(0.3)
        print(f"told {comm.rank}\\n", end="", flush=True)
class Never:
    def complete(self):
        print("too late", flush=True)
ends = Ends()
barrier = comm.barrier_async()  # kept: a Work that nobody holds is given up
ends.watch(barrier, Slow())
begun.wait()
alone = comm.split(comm.rank)  # whoever else ends first
receive = alone.recv_async(bytearray(8), source=0)  # ends as the process does
ends.watch(receive, Never())
"""


def test_who_is_being_told_is_waited_for_as_python_ends():
    """C++ code that it runs, like PyTorch's futures, must not be unwound, just like ours."""
    done = run_job(2, "-c", TOLD)
    assert done.returncode == 0, done.stdout
    assert "told 0" in done.stdout and "told 1" in done.stdout, done.stdout
    assert "too late" not in done.stdout


@pytest.mark.parametrize("call", ["recv", "barrier", "large"])
def test_closing_ends_the_call_of_another_thread(call, monkeypatch):
    monkeypatch.setenv("HOCKET_DEADLOCK_AFTER", "0")  # the waiting threads stand still until then

    def body(comm):
        group = comm.duplicate()
        for _ in range(40):  # enough for the thread to get the fast path
            group.barrier()
        raised = []

        def wait():
            try:
                if call == "recv":
                    group.recv(np.ones(3), 1 - comm.rank)
                elif call == "barrier":
                    while True:
                        group.barrier()
                        if comm.rank == 0:
                            group.recv(np.ones(3), 1)
                else:
                    while True:
                        group.all_reduce(np.ones(300_000))
            except hocket.Error as error:
                raised.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        thread.join(0.2)
        assert not raised
        comm.barrier()
        group.close()
        thread.join(30)
        assert not thread.is_alive()
        assert isinstance(raised[0], (hocket.Aborted, hocket.InvalidArgument)), raised
        assert "closed" in str(raised[0])
        comm.barrier()

    threads(2, body)


FORKED = """
import os, sys
import hocket
def ends(comm, how):
    if comm.rank == 1:
        if os.fork() == 0:
            print("child", how, flush=True)
            if how == "exits":
                sys.exit(3)
            if how == "raises":
                raise ValueError("of the child")
            return
        print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
    comm.barrier()
for how in ("returns", "exits", "raises"):
    hocket.run_threads(ends, 2, how)
"""


def test_a_child_that_a_rank_has_forked_ends_where_the_function_does():
    """It has neither the other ranks nor the memory that they share."""
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=50)
    assert done.stdout.split() == "child returns 0 child exits 3 child raises 1".split(), done.stderr
    assert done.stderr.count("ValueError: of the child") == 1
