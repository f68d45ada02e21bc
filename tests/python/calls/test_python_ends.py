"""Python ends while other threads are in hocket's calls, or hocket's own thread in a function of the
program. Before 3.14 Python ends a thread by unwinding it once it wants the GIL again.
"""

import subprocess
import sys

import pytest
from processes import run_job, with_package

OPERATOR = """
import sys, threading, time
import numpy as np
import hocket

comm = hocket.init(deadline=20)
how, seconds = sys.argv[1], float(sys.argv[2])

def slow(a, b):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(seconds if how == "sleeps" else 0.02)
    return a + b

if how == "a daemon thread":
    other = comm.duplicate()
    call = lambda: other.all_reduce(np.ones(4), op=hocket.Operator(slow))
    threading.Thread(target=call, daemon=True).start()
else:
    time.sleep(0.2 * comm.rank)  # so that on rank 0 the operator runs in hocket's thread
    work = comm.all_reduce_async(np.ones(4), op=hocket.Operator(slow))
time.sleep(0.4)
if how == "sys.exit":
    sys.exit(3)
if how == "raises":
    raise RuntimeError("ended by this")
"""


@pytest.mark.parametrize(
    "how, seconds, code",
    [("falls off", 1, 0), ("sys.exit", 1, 3), ("raises", 1, 1), ("a daemon thread", 1, 0), ("sleeps", 7, 0)],
)
def test_while_an_operator_runs(how, seconds, code):
    """A function of up to five seconds is waited for. A thread in a longer one is left behind."""
    job = run_job(2, "-c", OPERATOR, how, seconds)
    assert job.returncode == code, job.stdout
    assert "Fatal" not in job.stdout and "killed" not in job.stdout, job.stdout


LOOPS = """
import asyncio, sys, threading, time
import numpy as np
import hocket

comm = hocket.init(rank=0, size=1)
ones = np.ones(3)
slow_sum = hocket.Operator(lambda a, b: (time.sleep(0.001), a + b)[1])

def with_callbacks():
    work = comm.all_reduce_async(ones)
    work.add_done_callback(lambda work: time.sleep(0.001))
    work.wait()

async def awaits():
    while True:
        await comm.all_reduce_async(ones)

def forever(call):
    while True:
        call()

def raises():
    try:
        comm.broadcast(ones, root=7)
    except ValueError:
        pass

loops = {
    "objects": lambda: forever(lambda: comm.all_gather_object({"a": [1] * 100})),
    "callbacks": lambda: forever(with_callbacks),
    "errors": lambda: forever(raises),
    "await": lambda: asyncio.run(awaits()),
    "ranks": lambda: hocket.run_threads(lambda own: forever(lambda: own.all_reduce(ones)), 3),
    "ranks that sleep": lambda: hocket.run_threads(lambda own: forever(lambda: time.sleep(0.001)), 3),
    "ranks with an operator": lambda: hocket.run_threads(
        lambda own: forever(lambda: own.all_reduce(ones, op=slow_sum)), 3),
}
threading.Thread(target=loops[sys.argv[1]], daemon=True).start()
time.sleep(0.5)
print("ends", flush=True)
"""


@pytest.mark.parametrize(
    "loop",
    ["objects", "callbacks", "errors", "await", "ranks", "ranks that sleep", "ranks with an operator"],
)
def test_while_a_daemon_thread_makes_calls(loop):
    done = subprocess.run([sys.executable, "-c", LOOPS, loop], env=with_package(), timeout=50,
                          capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "ends\n"), done.stderr

DROPPED = """
import threading, time
import numpy as np
import hocket
from hocket._waiting.ends import Ends

comm = hocket.init(rank=0, size=1)
ended = threading.Event()

class Handle:
    def complete(self):
        ended.set()

    def __del__(self):
        time.sleep(0.3)
        print("dropped", flush=True)

ends = Ends("hocket handles")
x = np.empty(1)
call = comm.recv_async(x, 0)
ends.watch(call, Handle())
comm.send(np.ones(1), 0)
call.wait()
assert ended.wait(20)
"""


def test_while_a_handle_is_dropped():
    """The end of a handle may run C++ code of another package, so it is waited for, too."""
    done = subprocess.run([sys.executable, "-c", DROPPED], env=with_package(), timeout=50,
                          capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "dropped\n"), done
