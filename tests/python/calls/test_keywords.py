"""Keywords: the two words for a duration, and the error for a keyword that no function takes."""

import inspect
import subprocess
import sys

import numpy as np
import pytest
from helpers import threads

import hocket
from hocket import distribution, sparse

CALLS = {
    "all_reduce": lambda c, **k: c.all_reduce(np.ones(2), **k),
    "all_reduce_async": lambda c, **k: c.all_reduce_async(np.ones(2), **k).wait(),
    "prepare_all_reduce": lambda c, **k: c.prepare_all_reduce(np.ones(2), **k)(),
    "all_reduce_coalesced": lambda c, **k: c.all_reduce_coalesced([np.ones(2)], **k),
    "barrier": lambda c, **k: c.barrier(**k),
    "broadcast_object": lambda c, **k: c.broadcast_object(1, **k),
    "compressed_all_reduce": lambda c, **k: c.compressed_all_reduce(np.ones(2), **k),
    "send_recv": lambda c, **k: c.send_recv(np.ones(2), 1 - c.rank, **k),
    "duplicate": lambda c, **k: c.duplicate(**k),
    "symmetric.empty": lambda c, **k: c.symmetric.empty(2, **k),
    "sparse.send": lambda c, **k: (
        sparse.send(c, sparse_array(), 1, **k) if c.rank == 0 else sparse.recv(c, 0, **k)
    ),
    "redistribute": lambda c, **k: distribution.redistribute(
        c, np.ones(1), box(c.rank), box(1 - c.rank), **k
    ),
}


def sparse_array():
    return pytest.importorskip("scipy.sparse").csr_matrix(np.eye(2))


def box(place):
    return distribution.Box((place,), (place + 1,))


@pytest.mark.parametrize("call", CALLS)
def test_a_call_takes_a_deadline_by_either_name(call):
    if call.startswith("sparse"):
        sparse_array()

    def body(comm):
        CALLS[call](comm, deadline=30)
        CALLS[call](comm, timeout=30)
        CALLS[call](comm, **{"".join(["time", "out"]): 30})  # no interned name

    threads(2, body)


def test_a_deadline_holds_by_either_name():
    def body(comm):
        for name in ("deadline", "timeout"):
            own = comm.duplicate()
            if comm.rank == 0:
                with pytest.raises(hocket.DeadlineExceeded, match="within 0.02"):
                    own.all_reduce(np.ones(2), **{name: 0.02})
            comm.barrier()

    threads(2, body)


def test_what_waits_takes_a_timeout_by_either_name():
    def body(comm):
        for name in ("timeout", "deadline"):
            work = comm.recv_async(np.empty(1), 1 - comm.rank)
            with pytest.raises(TimeoutError):
                work.wait(**{name: 0.01})
            comm.barrier()
            comm.send(np.ones(1), 1 - comm.rank)
            work.wait(**{name: 30})
            comm.barrier()
            work.synchronize(**{name: 30})

    threads(2, body)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c: c.all_reduce(np.ones(2), tiemout=3), r"all_reduce\(\) has no argument 'tiemout'; did you mean 'timeout'"),
        (lambda c: c.all_reduce(np.ones(2), opp="max"), "no argument 'opp'; did you mean 'op'"),
        (lambda c: c.gather(np.ones(2), dest=1), "no argument 'dest'; it takes x, out, root, deadline"),
        (lambda c: c.barrier(timeout=3, deadline=3), "given deadline and timeout, which are one"),
        (lambda c: c.symmetric.empty(3, dtpye="int8"), "did you mean 'dtype'"),
        (lambda c: c.barrier_async().wait(time_out=3), "did you mean 'timeout'"),
        (lambda c: hocket.init(rnak=0), "rnak"),
        (lambda c: hocket.connect_store("unix:x", jbo="a"), "did you mean 'job'"),
        (lambda c: distribution.redistribute(c, 1, 2, 3, timeout=1, deadline=1), "which are one"),
    ],
)
def test_a_wrong_keyword_is_named(call, words):
    def body(comm):
        with pytest.raises(TypeError, match=words):
            call(comm)

    threads(1, body)


def test_init_has_a_signature():
    names = list(inspect.signature(hocket.init).parameters)
    assert names[:4] == ["rank", "size", "address", "key"] and "timeout" in names


def test_the_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "hocket", "version"], capture_output=True, text=True, timeout=50
    )
    assert done.returncode == 0 and hocket.__version__ in done.stdout


@pytest.mark.filterwarnings("ignore:nanobind")  # it warns, too
@pytest.mark.parametrize("name", ["Communicator", "Prepared", "SymmetricMemory"])
def test_what_was_never_made_is_refused(name):
    made = getattr(hocket._hocket, name)
    method = {"Communicator": "barrier", "Prepared": "__call__", "SymmetricMemory": "nvshmem_team"}

    class Subclass(made):
        def __init__(self):  # forgets the one above
            pass

    for one in (made.__new__(made), Subclass()):
        with pytest.raises(TypeError):
            getattr(one, method[name])()


# Calls with wrong arguments, and what their errors say.
WRONG = {
    "missing": (lambda c: c.all_reduce(), r"all_reduce\(\) is missing x; it is called as all_reduce\(x: ArrayT, out"),
    "missing by name": (lambda c: c.send(destination=1), r"send\(\) is missing x; it is called as send\(x: Array"),
    "missing with either word": (lambda c: c.all_reduce(timeout=3), r"all_reduce\(\) is missing x; it is called as"),
    "twice with either word": (
        lambda c: c.all_reduce(np.ones(2), x=np.ones(2), timeout=3), r"all_reduce\(\) was given x twice"),
    "two missing": (lambda c: c.send(), r"send\(\) is missing x, destination; it is called as"),
    "surplus": (lambda c: c.barrier(1, 2, 3), r"barrier\(\) takes 2 arguments without a name, and was given 3; it is"),
    "twice": (lambda c: c.all_reduce(np.ones(2), x=np.ones(2)), r"all_reduce\(\) was given x twice; it is called as"),
    "none to take": (lambda c: c.prepare_all_reduce(np.ones(2))(deadline=3), r"Prepared\(\) has no argument 'deadline'; it takes no"),
    "none to give": (lambda c: c.prepare_all_reduce(np.ones(2))(1), r"Prepared\(\) takes no arguments without a name, and was given"),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_error_says_how_a_call_is_made(name):
    call, text = WRONG[name]

    def body(comm):
        with pytest.raises(TypeError, match=text) as found:
            call(comm)
        assert "incompatible" not in str(found.value) and "nanobind" not in str(found.value)
        comm.barrier()  # all ranks have refused the call

    threads(2, body)


@pytest.mark.parametrize("seconds", [0, -1, -0.5, float("nan"), -float("inf")])
def test_a_deadline_is_more_than_nothing(seconds):
    def body(comm):
        for call in (comm.barrier, lambda **k: comm.recv(np.ones(1), 1 - comm.rank, **k)):
            with pytest.raises(hocket.InvalidArgument, match="deadline is .* s, expected more than 0 s"):
                call(deadline=seconds)
        if seconds != 0:
            work = comm.recv_async(np.ones(1), 1 - comm.rank)
            with pytest.raises(hocket.InvalidArgument, match="timeout is .* s, expected 0 s or more"):
                work.wait(timeout=seconds)
            comm.send(np.ones(1), 1 - comm.rank)
            work.wait()

    threads(2, body)
