"""A call within a call of the same communicator, in a signal handler or an operator, raises an
error.
"""

import threading

import numpy as np
import pytest
from helpers import threads
from processes import run_job

import hocket

WORDS = "an operator, or a signal's handler, uses communicator world within a call"

# A handler that runs while rank 0 waits in `outer` makes the call `inner`.
HANDLER = """
import signal, sys, time
import numpy as np
import hocket

comm = hocket.init()
early = comm.all_reduce_async(np.ones(1)) if "early" in sys.argv[2] else None
outer = {
    "barrier": lambda: comm.barrier(),
    "wait": lambda: comm.barrier_async().wait(),
    "recv": lambda: comm.recv(np.zeros(1), 1) if comm.rank == 0 else comm.send(np.zeros(1), 0),
    "all_gather_object": lambda: comm.all_gather_object(1),
}[sys.argv[1]]
inner = {
    "barrier": lambda: comm.barrier(),
    "all_reduce": lambda: comm.all_reduce(np.ones(1)),
    "async": lambda: comm.barrier_async(),
    "wait early": lambda: early.wait(),
    "send": lambda: comm.send(np.zeros(1), 1),
    "probe": lambda: comm.probe_now(),
}[sys.argv[2]]
said = []

def handle(*_):
    try:
        inner()
        said.append("")
    except hocket.InvalidArgument as error:
        said.append(str(error))

comm.send(np.zeros(1), 1, tag=9) if comm.rank == 0 else comm.recv(np.zeros(1), 0, tag=9)
if comm.rank == 0:
    signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
else:
    time.sleep(1)
outer()
if early:
    assert early.wait()[0] == 2
comm.barrier()
if comm.rank == 0:
    assert len(said) == 1, said
    assert {words!r} in said[0] or (early and said[0] == ""), said
"""


@pytest.mark.parametrize("outer", ["barrier", "wait", "recv", "all_gather_object"])
@pytest.mark.parametrize("inner", ["barrier", "all_reduce", "async", "wait early", "send", "probe"])
def test_a_signal_s_handler(tmp_path, outer, inner):
    (tmp_path / "program.py").write_text(HANDLER.replace("{words!r}", repr(WORDS)))
    done = run_job(2, tmp_path / "program.py", outer, inner, env={"HOCKET_DEADLINE": "15"}, timeout=40)
    assert done.returncode == 0, done.stdout


# The handler closes. The call within which it does so ends by that, on all ranks.
CLOSES = HANDLER.partition("outer()\nif early")[0].replace('"probe":', '"close": lambda: comm.close(), "probe":') + """
try:
    outer()
    print("ended well")
except hocket.Error as error:
    print(type(error).__name__, error)
sys.exit(said != ([""] if comm.rank == 0 else []))
"""


@pytest.mark.parametrize("outer", ["barrier", "wait", "recv", "all_gather_object"])
def test_a_signal_s_handler_closes(tmp_path, outer):
    (tmp_path / "program.py").write_text(CLOSES)
    done = run_job(2, tmp_path / "program.py", outer, "close", before=["--keep-going"],
                   env={"HOCKET_DEADLINE": "15", "HOCKET_LOG": "error"}, timeout=40)
    ended = "rank 0 closed the communicator with calls under way"
    assert done.returncode == 0 and done.stdout.count("Aborted") == 2 == done.stdout.count(ended), done.stdout


INNER = {
    "all_reduce": lambda comm: comm.all_reduce(np.ones(1)),
    "barrier": lambda comm: comm.barrier(),
    "wait": lambda comm: comm.barrier_async().wait(),
    "send": lambda comm: comm.send(np.ones(1), 1 - comm.rank),
}


@pytest.mark.parametrize("verb", ["block", "async", "prepared"])
@pytest.mark.parametrize("inner", INNER)
def test_an_operator(inner, verb):
    def body(comm):
        def combine(a, b):
            try:
                INNER[inner](comm)
            except hocket.InvalidArgument as error:
                said.append(str(error))
                raise
            return a + b

        op = hocket.Operator(combine)
        with pytest.raises((hocket.InvalidArgument, ValueError)):
            if verb == "block":
                comm.all_reduce(np.ones(4), op=op, deadline=15)
            elif verb == "async":
                comm.all_reduce_async(np.ones(4), op=op, deadline=15).wait()
            else:
                comm.prepare_all_reduce(np.ones(4), op=op)()
        assert comm.all_reduce(1) == 2

    said = []
    threads(2, body)
    assert said and all(WORDS in text for text in said)


@pytest.mark.parametrize("verb", ["all_reduce", "reduce", "scan", "all_reduce_async"])
def test_an_operator_closes(verb):
    def body(comm):
        def combine(a, b):
            comm.close()
            return a + b

        other = comm.duplicate()
        with pytest.raises((hocket.Aborted, hocket.InvalidArgument, hocket.PeerDied)):
            for _ in range(2):  # a rank that combines nothing may end well
                work = getattr(comm, verb)(np.ones(4), op=hocket.Operator(combine), deadline=15)
                if verb.endswith("async"):
                    work.wait()
        assert other.all_reduce(1) == 3

    threads(3, body)


def test_two_threads_are_still_told_of_two():
    inside = threading.Event()
    said = []

    def second(comm):
        inside.wait()
        for _ in range(1000):
            try:
                comm.barrier()
            except hocket.InvalidArgument as error:
                said.append(str(error))
                return

    def body(comm):
        if comm.rank == 1:
            inside.wait(20)
            threading.Event().wait(0.5)
            comm.barrier()
            return
        thread = threading.Thread(target=second, args=[comm])
        thread.start()
        threading.Timer(0.1, inside.set).start()
        comm.barrier()
        thread.join()

    threads(2, body)
    assert said and "two threads are using communicator world at once" in said[0]
