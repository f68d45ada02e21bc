"""Messages of NumPy arrays that are not contiguous."""

import asyncio
import gc
import sys
import threading

import ml_dtypes
import numpy as np
import pytest
from helpers import DTYPES, threads, values
from places import PLACES, run_at

import hocket

BASE = (6, 7, 8)
CUTS = {
    "every second": np.s_[::2],
    "backwards": np.s_[::-1],
    "a column": np.s_[:, 3],
    "one number in each": np.s_[:, 3, 5],
    "a box": np.s_[1:5, 2:6, 3:7],
    "steps all over": np.s_[::3, ::-2, 1::4],
    "the last axis": np.s_[..., ::5],
    "nothing": np.s_[3:3, ::2],
    "one row": np.s_[2],  # contiguous
    "a new axis": np.s_[:, None, 3, ::2],
}


def cut(array, name):
    return array[CUTS[name]]


def fill(rank, dtype="float64"):
    return values(rank, BASE, dtype)


def untouched(y, name, before):
    """Everything except the received elements is unchanged."""
    inside = np.zeros(BASE, bool)
    inside[CUTS[name]] = True
    return np.array_equal(y[~inside].astype("complex128"), before[~inside].astype("complex128"))


def equal(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def around(comm):
    return (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size


def to_and_from(comm):
    """Both sides cut, either side alone, at once and not."""
    following, preceding = around(comm)
    for dtype in DTYPES:
        for name in CUTS:
            mine, theirs = cut(fill(comm.rank, dtype), name), cut(fill(preceding, dtype), name)
            before = fill(comm.rank + 5, dtype)
            y = before.copy()
            work = comm.send_async(mine, following)
            received = comm.recv(cut(y, name), preceding)
            assert work.wait() is None and received.source == preceding
            assert equal(cut(y, name), theirs) and untouched(y, name, before), (dtype, name)

            flat = np.empty(theirs.size, dtype)
            work = comm.recv_async(flat, preceding)
            comm.send(mine, following)
            assert work.wait() is flat and equal(flat.reshape(theirs.shape), theirs)

            y = before.copy()
            target = cut(y, name)
            work = comm.recv_async(target, preceding)
            comm.send(mine.copy("C"), following)
            assert work.wait() is target
            assert equal(target, theirs) and untouched(y, name, before)

            y = before.copy()
            assert equal(comm.send_recv(mine, following, cut(y, name), preceding), theirs)
            assert equal(cut(y, name), theirs) and untouched(y, name, before)
            assert equal(comm.send_recv(mine, following, source=preceding), theirs)

            x = fill(comm.rank, dtype)  # what is sent is received into
            comm.exchange([(cut(x, name), following)], [(cut(x, name), preceding)])
            assert equal(cut(x, name), theirs) and untouched(x, name, fill(comm.rank, dtype))


@pytest.mark.parametrize("place", PLACES)
def test_everywhere(place):
    run_at(place, 3, to_and_from)


@pytest.mark.parametrize("n", [1, 2])
def test_threads(n):
    threads(n, to_and_from)


def test_other_layouts():
    """Transposed, in Fortran order, from another library, of a class of one's own."""

    class Own(np.ndarray):
        pass

    def body(comm):
        following, preceding = around(comm)
        base = np.arange(24.0).reshape(2, 3, 4) + 100 * comm.rank
        for x in [
            base.transpose(1, 0, 2),
            np.asfortranarray(base)[:, ::2],
            base.view(Own)[:, 1:, ::3],
            np.ma.array(base)[:, 1:, ::3],  # nothing is masked
            base.astype(ml_dtypes.bfloat16)[..., ::2],
        ]:
            y = np.zeros(x.shape, x.dtype)
            comm.send_recv(x, following, y, preceding)
            wanted = np.asarray(x).astype("float64") + 100 * (preceding - comm.rank)
            assert np.array_equal(y, wanted.astype(x.dtype))

    threads(2, body)


def test_the_order_of_axes_counts():
    def body(comm):
        with pytest.raises(hocket.Mismatch, match="order"):
            if comm.rank == 0:
                comm.send(np.ones((1000, 400), order="F"), 1)  # as it lies
            else:
                comm.recv(np.ones((2000, 400))[::2], 0)

    threads(2, body)


def test_refusals():
    def body(comm):
        y = np.zeros((4, 4))
        locked = y[:, 1]
        locked.flags.writeable = False
        strides = np.lib.stride_tricks
        windows = strides.as_strided(np.zeros(10), (4, 4), (8, 8))
        for wrong, text in [
            (locked, "read-only"),
            (strides.as_strided(np.zeros(10), (4, 5), (16, 0)), "several elements at one place"),
            (windows, "several elements at one place"),
            (np.zeros(8, ">f8")[::2], "byte-swapped"),
            (np.zeros(8, "M8[s]")[::2], "dtype"),
            (np.ma.array(y, mask=y == 0)[:, 1], "mask"),
        ]:
            for call in [comm.recv, comm.recv_async]:
                with pytest.raises(hocket.InvalidArgument, match=text):
                    call(wrong, comm.rank)
            with pytest.raises(hocket.InvalidArgument, match=text):
                comm.exchange([], [(wrong, comm.rank)])
        for wrong, text in [(np.zeros(8, ">f8")[::2], "byte-swapped"), (memoryview(y)[::2], "contiguous")]:
            with pytest.raises(hocket.InvalidArgument, match=text):
                comm.send(wrong, comm.rank)
        # Overlapping elements can be sent.
        comm.send_recv(windows, comm.rank, y)
        # Collectives combine and cut arrays where they lie.
        with pytest.raises(hocket.InvalidArgument, match="not contiguous"):
            comm.all_reduce(y[:, 1])

    threads(2, body)


@pytest.mark.parametrize("sent", [100_001, 200_000, 99_999])
def test_different_sizes_are_a_mismatch_as_ever(sent):
    def body(comm):
        y = np.full(200_000, -1.0)
        with pytest.raises(hocket.Mismatch):
            if comm.rank == 0:
                comm.send(np.arange(2.0 * sent)[::2], 1)
            else:
                comm.recv(y[::2], 0)
        assert (y == -1).all()  # nothing of what did not fit

    threads(2, body)


def received_by(way):
    """The ways in which a program learns that its message has come."""

    def body(comm):
        y = np.zeros((50, 4))
        if comm.rank == 0:
            comm.recv(np.empty(1), 1)
            comm.send(np.arange(100.0)[::2], 1)
            return
        work = comm.recv_async(y[:, 2], 0)
        assert not work.test() and not y.any()
        comm.send(np.zeros(1), 0)
        way(work)
        assert np.array_equal(y[:, 2], np.arange(0, 100, 2)) and not y[:, [0, 1, 3]].any()
        y[:] = 7  # it is the program's again
        assert work.test() and (work.wait() == 7).all() and (y == 7).all()

    return body


def by_test(work):
    while not work.test():
        pass


def by_done(work):
    while not work.done:
        pass


def by_received(work):
    while work.received is None:
        work.exception  # noqa: B018: lets it go on
    assert work.received.source == 0


def by_callback(work):
    called = threading.Event()
    work.add_done_callback(lambda _: called.set())
    assert called.wait(50)


async def waiting(work):
    await work


@pytest.mark.parametrize(
    "way",
    [
        lambda work: work.wait(),
        lambda work: work.wait(timeout=50),
        lambda work: work.synchronize(),
        lambda work: hocket.wait_all([work]),
        lambda work: hocket.wait_any([work]),
        lambda work: asyncio.run(waiting(work)),
        by_test,
        by_done,
        by_received,
        by_callback,
    ],
    ids=["wait", "timeout", "synchronize", "wait_all", "wait_any", "await", "test", "done", "received", "callback"],
)
def test_received_by(way):
    threads(2, received_by(way))


def test_what_is_packed_lives_as_long_as_the_call():
    def body(comm):
        if comm.rank == 0:
            works = []
            for i in range(20):
                x = np.full((1000, 100), float(i))
                works.append(comm.send_async(x[:, ::2], 1, tag=i))
                x[:] = -1  # it has been packed
                del x
            gc.collect()
            comm.recv(np.empty(1), 1)
            hocket.wait_all(works)
        else:
            comm.send(np.zeros(1), 0)
            y = np.empty((1000, 100))
            for i in range(20):
                comm.recv(y[:, 1::2], 0, tag=i)
                assert (y[:, 1::2] == i).all()

    threads(2, body)


def test_nothing_is_kept():
    def body(comm):
        x = np.zeros((10, 10))
        before = sys.getrefcount(x)
        for _ in range(3):
            comm.send_recv(x[:, 1], comm.rank, x[:, 2])
            work = comm.recv_async(x[:, 3], comm.rank)
            comm.send(x[:, 1], comm.rank)
            work.wait()
            del work
        gc.collect()
        assert sys.getrefcount(x) == before

    threads(1, body)


def test_a_receive_that_fails_writes_nothing():
    def body(comm):
        y = np.zeros((10, 10))
        if comm.rank == 1:
            work = comm.recv_async(y[:, 1], 0, deadline=0.1)
            with pytest.raises(hocket.DeadlineExceeded):
                work.wait()
            assert work.test() and not y.any()
        else:
            with pytest.raises(hocket.DeadlineExceeded):
                comm.recv(y[:, 1], 1)

    threads(2, body)


def test_large():
    def body(comm):
        x = np.arange(4_000_000.0).reshape(2000, 2000)
        if comm.rank == 0:
            comm.send(x[:, ::2], 1)
        else:
            y = np.zeros((2000, 2000))
            comm.recv(y.T[:, 1::2], 0)
            assert np.array_equal(y[1::2].T, x[:, ::2]) and not y[::2].any()

    threads(2, body)


def shorter_both_ways(comm):
    peer = 1 - comm.rank
    out = np.full((4, 6), -1.0)
    part = out[:, ::2]
    got = comm.send_recv(np.full(3 + comm.rank, comm.rank + 0.5), peer, part, allow_shorter=True)
    with pytest.raises(hocket.InvalidArgument, match="allow_shorter"):
        comm.send_recv(np.zeros(1), peer, np.zeros(1), allow_shorter="yes")
    return got, out


def test_send_recv_takes_a_shorter_message():
    for rank, (got, out) in enumerate(threads(2, shorter_both_ways)):
        came = 3 + 1 - rank
        assert got.shape == (came,) and (got == 1.5 - rank).all()
        wanted = np.full(12, -1.0)
        wanted[:came] = 1.5 - rank
        assert (out[:, ::2].ravel() == wanted).all() and (out[:, 1::2] == -1).all()
