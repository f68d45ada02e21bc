"""Failures as exceptions: their classes and fields, and the state of the communicator
afterwards.
"""

import errno
import math
import os
import pickle
import threading
import time
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from helpers import threads
from processes import run_by_hand

import hocket


def test_classes():
    for name, base in {
        "InvalidArgument": ValueError,
        "DeadlineExceeded": TimeoutError,
        "PeerDied": ConnectionError,
        "RendezvousError": ConnectionError,
        "SystemError_": OSError,
        "DeviceError": RuntimeError,
        "Mismatch": Exception,
        "Aborted": Exception,
    }.items():
        cls = getattr(hocket, name)
        assert issubclass(cls, hocket.Error) and issubclass(cls, base)
        assert issubclass(cls, RuntimeError)  # what programs for PyTorch, CuPy and others catch
        error = cls("what happened")
        assert str(error) == "what happened" and error.status is None
        assert str(pickle.loads(pickle.dumps(error))) == "what happened"


def test_what_the_system_refuses_is_an_os_error_with_its_number(tmp_path):
    (tmp_path / "file").touch()

    def body(comm):
        with pytest.raises(OSError) as caught:
            comm.dump(tmp_path / "file")
        return caught.value

    (error,) = threads(1, body)
    assert type(error) is hocket.SystemError_
    assert error.errno == error.error_number == errno.ENOTDIR
    assert str(error).startswith("cannot write ") and error.status.code == "system"


@pytest.mark.parametrize(
    "call, difference",
    [
        (lambda c: c.new_group([c.rank, 1 - c.rank]), "new_group #1 with another list of ranks"),
        (lambda c: c.intra_node if c.rank else c.split(0), "called intra_node #1"),
        (lambda c: c.all_gather_v(np.zeros(2), counts=[2 - c.rank, 1 + c.rank]),
         "with other counts"),
        (lambda c: c.all_reduce_coalesced([np.zeros(2 + c.rank), np.zeros(3 - c.rank)]),
         "float64[5] with another list of arrays"),
    ],
)
def test_mismatch_says_what_differs_where_the_calls_read_alike(call, difference):
    def body(comm):
        with pytest.raises(hocket.Mismatch) as caught:
            call(comm)
            comm.barrier()
        return str(caught.value)

    assert difference in threads(2, body)[0]


@pytest.mark.parametrize("others", [1, 2], ids=["one call", "several calls"])
def test_an_empty_list_does_not_pass_where_others_are_not_empty(others):
    calls = {
        "all_reduce": lambda c, all: c.all_reduce_coalesced(all),
        "broadcast": lambda c, all: c.broadcast_coalesced(all),
        "all_gather": lambda c, all: c.all_gather_coalesced(all),
        "reduce_scatter": lambda c, all: c.reduce_scatter_coalesced(
            [np.zeros((2, 3), one.dtype) for one in all], all
        ),
    }

    def body(comm, call):
        lists = [np.zeros(3, dtype) for dtype in ("float32", "int64")[:others]]
        with pytest.raises(hocket.Mismatch):
            calls[call](comm, lists if comm.rank else [])
            comm.barrier()
        comm = comm.rebuild()
        assert not calls[call](comm, [])
        return comm.all_reduce(np.ones(1))[0]

    for call in calls:
        assert threads(2, lambda comm: body(comm, call)) == [2, 2]


def test_mismatch_names_both_calls():
    def body(comm):
        with pytest.raises(hocket.Mismatch) as caught:
            if comm.rank == 1:
                comm.all_reduce(np.zeros(4, "float64"), op="max")
            else:
                comm.all_reduce(np.zeros(4, "float32"))
            comm.barrier()
        error = caught.value
        assert "float64" in str(error) and "float32" in str(error)
        assert {call.rank for call in error.calls} >= {1}
        assert error.status.code == "mismatch" and comm.status.code == "mismatch"
        with pytest.raises(hocket.Mismatch):
            comm.barrier()

    threads(3, body)


WHOLE = {
    "all_reduce": lambda c, x: c.all_reduce(x),
    "all_reduce out": lambda c, x: c.all_reduce(x, np.empty_like(x)),
    "all_reduce_async": lambda c, x: c.all_reduce_async(x).wait(),
    "all_reduce_coalesced": lambda c, x: c.all_reduce_coalesced([np.zeros(2), x]),
    "prepare_all_reduce": lambda c, x: c.prepare_all_reduce(x)(),
    "broadcast": lambda c, x: c.broadcast(x, root=1),
    "reduce": lambda c, x: c.reduce(x, root=1),
}


@pytest.mark.parametrize("call", WHOLE)
def test_arrays_in_different_orders_do_not_correspond(call):
    def body(comm):
        order = "F" if comm.rank == 1 else "C"
        same = np.asarray(np.arange(6.0).reshape(2, 3), order="F")
        WHOLE[call](comm, same)
        comm.barrier()
        with pytest.raises(hocket.Mismatch) as caught:
            WHOLE[call](comm, np.zeros((2, 3), order=order))
            comm.barrier()
        if "coalesced" not in call:
            assert "in Fortran order" in str(caught.value)

    threads(2, body)


@pytest.mark.parametrize("way", ["send", "send_async", "send_recv", "exchange"])
@pytest.mark.parametrize("orders", ["CF", "FC"])
def test_a_message_comes_in_the_order_it_was_sent_in(way, orders):
    def body(comm):
        there, n = 1 - comm.rank, np.arange(6.0).reshape(2, 3)
        x = np.asarray(n, order=orders[0])
        flat = np.empty(6)
        comm.send_recv(x, there, flat)  # of one axis: as they lie
        assert np.array_equal(flat, x.ravel("K"))
        out = np.empty((2, 3), order=orders[1])
        with pytest.raises((hocket.Mismatch, hocket.InvalidArgument)) as caught:
            if way == "send" and comm.rank == 0:
                comm.send(x, there)
            elif way == "send":
                comm.recv(out, there)
            elif way == "send_async":
                sent, received = comm.send_async(x, there), comm.recv_async(out, there)
                received.wait()
                sent.wait()
            elif way == "send_recv":
                comm.send_recv(x, there, out)
            else:
                comm.exchange([(x, there)], [(out, there)])
        assert "Fortran order" in str(caught.value)

    threads(2, body)


REFUSED = {
    "all_reduce": lambda c, x: c.all_reduce(x),
    "all_reduce_coalesced": lambda c, x: c.all_reduce_coalesced([np.zeros(2), x]),
    "all_gather_coalesced": lambda c, x: c.all_gather_coalesced([x]),
    "reduce_scatter_coalesced": lambda c, x: c.reduce_scatter_coalesced([x], [np.zeros(3)]),
    "all_gather_v": lambda c, x: c.all_gather_v(x),
    "all_to_all_v": lambda c, x: c.all_to_all_v(x, [1] * c.size),
    "reduce_scatter_v": lambda c, x: c.reduce_scatter_v(x),
    "reproducible_sum": lambda c, x: c.reproducible_sum(x, np.zeros(3)),
    "compressed_all_reduce": lambda c, x: c.compressed_all_reduce(x),
    "prepare_all_to_all": lambda c, x: c.prepare_all_to_all(x)(),
    "what C++ refuses to prepare": lambda c, x: c.prepare_all_reduce(
        np.zeros(2), op="bor" if isinstance(x, str) else "sum"
    )(),
    "op": lambda c, x: c.all_reduce(np.zeros(2), op=None if isinstance(x, str) else "sum"),
    "counts": lambda c, x: c.all_gather_v(
        np.zeros(2), counts=[2.0] * c.size if isinstance(x, str) else [2] * c.size
    ),
    "no list of arrays": lambda c, x: c.all_reduce_coalesced(
        None if isinstance(x, str) else [np.zeros(2)]
    ),
    "all_gather_object": lambda c, x: c.all_gather_object(
        1, timeout="soon" if isinstance(x, str) else None
    ),
    "allow_pickle": lambda c, x: c.all_gather_object(1, allow_pickle=x if isinstance(x, str) else True),
    "new_group": lambda c, x: c.new_group([2**40] if isinstance(x, str) else [0, 1]),
    "split": lambda c, x: c.split(2**40 if isinstance(x, str) else 0),
    "duplicate": lambda c, x: c.duplicate(timeout="soon" if isinstance(x, str) else None),
    "symmetric.empty": lambda c, x: c.symmetric.empty(-1 if isinstance(x, str) else 3),
    "barrier": lambda c, x: c.barrier(timeout="soon" if isinstance(x, str) else None),
    "stream of a v-form": lambda c, x: c.all_gather_v(
        np.zeros(2), counts=[2] * c.size, stream="mine" if isinstance(x, str) else None
    ),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_what_python_refuses_reaches_everybody(call):
    """The communicator stays usable: no rank has counted a call that another has not."""

    def body(comm):
        for culprit in range(comm.size):
            with pytest.raises((hocket.InvalidArgument, TypeError)) as caught:
                call(comm, "no array" if comm.rank == culprit else np.zeros((comm.size, 3)))
            if comm.rank != culprit:
                assert f"rank {culprit} refused" in str(caught.value)
        assert comm.all_reduce(np.ones(1))[0] == comm.size

    threads(3, body)


def test_a_message_from_anybody_that_does_not_come_names_all_who_might_send_it():
    told = threading.Event()

    def body(comm):
        if comm.rank != 1:
            return told.wait(50)
        with pytest.raises(hocket.DeadlineExceeded) as caught:
            comm.recv(np.zeros(3), deadline=0.1)
        told.set()
        assert caught.value.missing == (0, 2)
        assert "rank 0 (pid" in str(caught.value) and "rank 2 (pid" in str(caught.value)

    threads(3, body)


def test_an_exchange_receives_each_message_into_memory_of_its_own():
    def body(comm):
        z, there = np.zeros(6), 1 - comm.rank
        with pytest.raises(hocket.InvalidArgument, match=r"incoming\[0\] and incoming\[1\] overlap"):
            comm.exchange([(np.ones(4), there)] * 2, [(z[2:], there), (z[:4], there)])
        comm.exchange([(np.ones(3), there)] * 2, [(z[3:], there), (z[:3], there)])
        assert (z == 1).all()

    threads(2, body)


# With two ranks. Elements in no part would be dropped, or keep their old values.
LEFT_OVER = {
    "reduce_scatter_v": lambda c: c.reduce_scatter_v(np.arange(4.0), counts=[1, 1]),
    "reduce_scatter_v, nothing": lambda c: c.reduce_scatter_v(np.arange(4.0), np.zeros(0)),
    "scatter_v": lambda c: c.scatter_v(np.arange(4.0), np.zeros(1), [1, 1]),
    "all_to_all_v": lambda c: c.all_to_all_v(np.arange(4.0), [1, 1]),
    "all_to_all_v, out": lambda c: c.all_to_all_v(np.arange(4.0), [2, 2], np.zeros(9)),
    "all_gather_v": lambda c: c.all_gather_v(np.arange(4.0), np.zeros(50)),
    "gather_v": lambda c: c.gather_v(np.arange(4.0), np.zeros(100)),
}


@pytest.mark.parametrize("call", LEFT_OVER.values(), ids=LEFT_OVER)
def test_parts_are_the_whole_array(call):
    def body(comm):
        with pytest.raises(hocket.InvalidArgument, match="the counts of all ranks together make"):
            call(comm)
        assert comm.all_reduce(np.ones(1))[0] == comm.size

    threads(2, body)


def test_refusal_reaches_everybody():
    def body(comm):
        bad = np.zeros((4, 4))[:, 1] if comm.rank == 2 else np.zeros(4)
        with pytest.raises(hocket.InvalidArgument) as caught:
            comm.all_reduce(bad)
        if comm.rank == 2:
            assert "x is not contiguous" in str(caught.value)
        else:
            assert "rank 2" in str(caught.value)
        assert comm.status is None
        assert comm.all_reduce(np.array(comm.rank)) == 3  # as good as new

    threads(3, body)


def test_deadline_names_who_is_missing():
    seen = threading.Barrier(3)

    def body(comm):
        if comm.rank == 1:
            seen.wait(30)
            return
        with pytest.raises(hocket.DeadlineExceeded) as caught:
            comm.all_reduce(np.zeros(3), timeout=timedelta(seconds=0.1))
        assert caught.value.missing == (1,)
        assert isinstance(caught.value, TimeoutError)
        assert caught.value.status.operation == "all_reduce"
        seen.wait(30)

    threads(3, body)


@pytest.mark.parametrize(
    "wait", ["recv", "send", "recv_async", "after a call"], ids=lambda name: name.replace(" ", "_")
)
def test_deadline_of_a_message_shows_what_the_other_waits_in(wait):
    def body(comm):
        there = 1 - comm.rank
        if wait == "after a call":
            comm.barrier()
        # The other one waits for much longer, and has begun when the first gives up.
        limit = 20 if comm.rank else 0.5
        with pytest.raises(hocket.DeadlineExceeded) as caught:
            if comm.rank == 0 and wait == "send":
                comm.send_async(np.zeros(1 << 22), there, deadline=limit).wait()
            elif comm.rank == 0:  # whose calls under way keep this from being a proven deadlock
                comm.recv_async(np.zeros(3), there, tag=7, deadline=limit).wait()
            elif wait == "send":
                comm.send(np.zeros(1 << 22), there, tag=1, deadline=limit)
            elif wait == "recv_async":
                works = [comm.recv_async(np.zeros(3), there, tag=t, deadline=limit) for t in (5, 6)]
                works[1].wait()
            else:
                comm.recv(np.zeros(3), there, tag=7, deadline=limit)
        return str(caught.value), caught.value.calls

    for text, calls in threads(2, body):
        shown = {
            "recv": "last seen in recv of float64[3] from rank 0 tag 7;",
            "send": "last seen in send of float64[4194304] to rank 0 tag 1;",
            "recv_async": "last seen in recv of float64[3] from rank 0 tag 5 and 1 more;",
            "after a call": "last seen in recv of float64[3] from rank 0 tag 7, after barrier #1 (finished);",
        }[wait]
        assert shown in text, text
        assert calls[0].rank == 1 and calls[0].call in shown


def test_a_rank_that_was_seen_in_nothing_is_told_so():
    seen = threading.Barrier(2)

    def body(comm):
        if comm.rank == 0:
            with pytest.raises(hocket.DeadlineExceeded, match="last seen in no collective call so far"):
                comm.recv(np.zeros(3), 1, deadline=0.1)
        seen.wait(30)

    threads(2, body)


def test_default_deadline():
    seen = threading.Barrier(2)

    def body(comm):
        assert comm.deadline == 300
        comm.deadline = math.inf
        assert comm.deadline == math.inf
        assert comm.duplicate().deadline == math.inf
        comm.deadline = None
        assert comm.deadline == 300
        comm.deadline = 0.1
        assert comm.deadline == pytest.approx(0.1)
        if comm.rank == 0:
            with pytest.raises(hocket.DeadlineExceeded):
                comm.barrier()
        seen.wait(30)

    threads(2, body)


def test_abort():
    def body(comm):
        if comm.rank == 0:
            threading.Timer(0.05, comm.abort, ["enough"]).start()
        with pytest.raises(hocket.Aborted, match="enough"):
            while True:
                comm.barrier()
                if comm.rank == 0:
                    time.sleep(0.2)

    threads(2, body)


def test_calls_are_recorded():
    def body(comm):
        comm.all_reduce(np.zeros(5, "float32"))
        comm.barrier()
        calls = comm.recent_calls()
        assert [call.sequence for call in calls] == sorted(call.sequence for call in calls)
        assert any("all_reduce" in call.call and "float32" in call.call for call in calls)
        last = comm.last_calls()
        assert [call.rank for call in last] == [0, 1]
        assert all(isinstance(call, hocket.RankCall) for call in calls + last)

    threads(2, body)


def test_dump(tmp_path):
    def body(comm):
        comm.all_reduce(np.arange(3.0))
        with pytest.raises(hocket.InvalidArgument, match="HOCKET_DUMP_DIR"):
            comm.dump()
        written = comm.dump(tmp_path / "records")
        assert written == str(tmp_path / "records" / f"rank-{comm.rank}.world.txt")
        text = Path(written).read_text()
        assert text.startswith(f"rank {comm.rank} of the world (pid {os.getpid()}), ")
        assert "no error so far" in text
        assert "  all_reduce #1 sum float64[3]\n" in text
        comm.barrier()

    threads(2, body)


DIES = """
import os, signal, sys, time
import numpy as np, hocket
rank = int(sys.argv[1])
comm = hocket.init(rank=rank, size=3, address=sys.argv[2], key=bytes(range(32)), timeout=30)
pids = comm.all_gather_object(os.getpid())
for step in range(100):
    if rank == 1 and step == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        comm.all_reduce(np.ones(1000))
    except hocket.PeerDied as error:
        assert isinstance(error, ConnectionError)
        assert (error.rank, error.pid, error.status.peer) == (1, pids[1], 1), vars(error)
        # The first error may come before the signal is known; a later one has it.
        for _ in range(20_000):
            try:
                comm.barrier()
            except hocket.PeerDied as later:
                if later.signal == signal.SIGKILL and "signal 9 (SIGKILL)" in str(later):
                    break
            time.sleep(0.001)
        else:
            sys.exit("the signal was never known")
        print("as it should")
        break
"""


def test_peer_died():
    # Started by hand: a launcher would end the survivors.
    outputs = run_by_hand(3, DIES)
    assert outputs[0] == outputs[2] == "as it should\n", outputs
    assert outputs[1] == ""


CLOSES = """
import os, sys, time
import numpy as np, hocket
rank = int(sys.argv[1])
comm = hocket.init(rank=rank, size=2, address=sys.argv[2], key=bytes(range(32)), timeout=30)
comm.barrier()
if rank == 1:
    comm.close()
    while not os.path.exists(sys.argv[3]):  # it lives on
        time.sleep(0.01)
else:
    try:
        comm.all_reduce(np.ones(3))
    except hocket.PeerDied as error:
        print(error)
    open(sys.argv[3], "w").close()
"""


def test_closing_too_early_is_told_from_death(tmp_path):
    outputs = run_by_hand(2, CLOSES.replace("sys.argv[3]", repr(str(tmp_path / "told"))))
    assert "ended in good order (its process still runs: it has closed its world" in outputs[0]
    assert "close a world only after the last call of all ranks" in outputs[0]


def test_a_thread_that_has_returned_is_said_to_have():
    def body(comm):
        if comm.rank == 1:
            return
        with pytest.raises(hocket.PeerDied, match="rank 1 .*has returned from what it was called for") as caught:
            comm.all_reduce(np.ones(3))
        assert "have each rank return only after the last call of all" in str(caught.value)
        assert "close a world" not in str(caught.value)

    threads(2, body)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda comm: comm.recv_object(1, deadline=0.05), "recv_object from rank 1 tag 0"),
        (lambda comm: comm.recv_object_async(tag=3, deadline=0.05).wait(), "recv_object from any rank tag 3"),
    ],
)
def test_errors_name_the_message_of_an_object(call, text):
    def body(comm):
        with pytest.raises(hocket.DeadlineExceeded, match=text) as caught:
            call(comm) if comm.rank == 0 else comm.barrier()
        assert "uint8" not in str(caught.value)

    threads(2, body)


@pytest.mark.parametrize("call", ["broadcast_object", "gather_object", "all_gather_object", "scatter_object"])
@pytest.mark.parametrize("waits", [True, False])
def test_errors_name_the_collective_of_objects(call, waits):
    def body(comm):
        if comm.rank == 1:
            with pytest.raises(hocket.Mismatch):
                comm.barrier()
            return
        with pytest.raises(hocket.Mismatch, match=f"rank 0 called {call} #1") as caught:
            getattr(comm, call)([1, 2]) if waits else getattr(comm, f"{call}_async")([1, 2]).wait()
        assert caught.value.status.operation in (call, "barrier")  # of the rank that has seen it

    threads(2, body)


@pytest.mark.parametrize("parts", [0, 1])
def test_errors_name_the_collective_of_objects_in_either_part(parts):
    """The other rank closes before it has made so many parts of the call."""
    has_begun = threading.Event()

    def body(comm):
        if comm.rank == 1:
            for _ in range(parts):
                with comm._named("all_gather_object"):
                    comm.all_gather(np.zeros(1, np.uint64), out=np.zeros(2, np.uint64))
            assert has_begun.wait(30)
            return
        work = comm.all_gather_object_async("x")
        has_begun.set()
        with pytest.raises(hocket.PeerDied, match="^rank 1 .* has returned .* while it was needed in all_gather_object "):
            work.wait()
        assert work.exception.status.operation == "all_gather_object"

    threads(2, body)
