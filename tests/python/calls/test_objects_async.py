"""Objects without waiting: handles whose `wait` and `await` give what the blocking calls return."""

import asyncio
import threading

import numpy as np
import pytest
from helpers import RANK_COUNTS, threads
from processes import run_job

import hocket


def object_of(rank, size):
    """One message, or several."""
    return {"rank": rank, "text": "x" * rank, "array": np.arange(size) + rank}


def equal(found, rank, size):
    wanted = object_of(rank, size)
    return (found["rank"], found["text"]) == (wanted["rank"], wanted["text"]) and np.array_equal(
        found["array"], wanted["array"]
    )


def run_asyncio(main, *args):
    return asyncio.run(main(*args))


def run_trio(main, *args):
    return pytest.importorskip("trio", reason="trio is not installed").run(main, *args)


# --- Collectives ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", RANK_COUNTS)
@pytest.mark.parametrize("size", [0, 3, 60_000])
def test_results_are_those_of_the_blocking_calls(n, size):
    def body(comm):
        mine = object_of(comm.rank, size)
        for root in range(n):
            work = comm.broadcast_object_async(mine if comm.rank == root else None, root)
            found = work.wait()
            assert equal(found, root, size) and work.wait() is found and work.exception is None
            assert (found is mine) == (comm.rank == root)
            all_of_them = comm.gather_object_async(mine, root).wait()
            assert (all_of_them is None) == (comm.rank != root)
            assert all(equal(each, r, size) for r, each in enumerate(all_of_them or ()))
            each = [object_of(10 * root + r, size) for r in range(n)]
            found = comm.scatter_object_async(each if comm.rank == root else None, root).wait()
            assert equal(found, 10 * root + comm.rank, size)
        found = comm.all_gather_object_async(mine).synchronize()
        assert len(found) == n and all(equal(each, r, size) for r, each in enumerate(found))

    threads(n, body)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_calls_keep_their_order_among_others(n):
    """They are waited for in the other order, and some ranks make the blocking call."""

    def body(comm):
        x = np.full(4, comm.rank + 1.0)
        for i in range(10):
            works = [
                comm.all_gather_object_async((i, comm.rank)),
                comm.all_reduce_async(x.copy()),
                comm.broadcast_object_async([i] * 1000 if comm.rank == i % n else None, i % n),
                comm.barrier_async(),
                comm.gather_object_async("g" * i + str(comm.rank), root=(i + 1) % n),
            ]
            if comm.rank == 0:
                last = comm.all_gather_object(comm.rank)
            else:
                last = comm.all_gather_object_async(comm.rank).wait()
            assert last == list(range(n))
            found = [work.wait() for work in reversed(works)][::-1]
            assert found[0] == [(i, r) for r in range(n)]
            assert found[1][0] == n * (n + 1) / 2 and found[2] == [i] * 1000 and found[3] is None
            assert found[4] == (["g" * i + str(r) for r in range(n)] if comm.rank == (i + 1) % n else None)

    threads(n, body)


def test_they_do_not_wait():
    """Rank 0 has begun all of them before another rank has come."""
    begun = threading.Event()

    def body(comm):
        if comm.rank != 0:
            assert begun.wait(20)
        works = [
            comm.broadcast_object_async("b"),
            comm.all_gather_object_async(comm.rank),
            comm.scatter_object_async(["s0", "s1", "s2"] if comm.rank == 0 else None),
            comm.gather_object_async(comm.rank),
        ]
        if comm.rank == 0:
            assert not any(work.done for work in works)
            begun.set()
        return [work.wait() for work in works]

    assert threads(3, body) == [
        ["b", [0, 1, 2], "s0", [0, 1, 2]], ["b", [0, 1, 2], "s1", None], ["b", [0, 1, 2], "s2", None]
    ]


def test_what_is_given_is_read_at_once():
    def body(comm):
        mine = [comm.rank]
        work = comm.all_gather_object_async(mine)
        mine.append("later")
        to, source = (comm.rank + 1) % 2, (comm.rank + 1) % 2
        long = bytearray(100_000)
        sent = comm.send_object_async(long, to)
        long[:] = b"x" * len(long)
        assert comm.recv_object(source).object == bytearray(100_000)
        sent.wait()
        return work.wait()

    assert threads(2, body) == [[[0], [1]]] * 2


@pytest.mark.parametrize("n", [2, 3])
def test_a_refused_call_takes_one_number_on_all_ranks(n):
    """Calls that were started behind it are right."""

    def body(comm):
        comm.deadline = 20
        errors = []
        for make in (
            lambda: comm.all_gather_object_async(object() if comm.rank == 1 else 5),
            lambda: comm.gather_object_async(object() if comm.rank == 1 else 5),
            lambda: comm.broadcast_object_async(1, root=7 if comm.rank == 1 else 0),
            lambda: comm.scatter_object_async([1] * (n + 1) if comm.rank == 1 else None, root=1),
        ):
            before = comm.all_reduce_async(np.ones(1))
            try:
                work = make()
            except hocket.InvalidArgument as error:
                work = None
                errors.append(str(error))
            behind = [comm.all_reduce_async(np.full(1, i)) for i in range(3)]
            text = comm.broadcast_object_async("behind" if comm.rank == 0 else None)
            if work is not None:
                with pytest.raises(hocket.InvalidArgument, match="rank 1 refused"):
                    work.wait()
                assert isinstance(work.exception, hocket.InvalidArgument)
            assert [one.wait()[0] for one in behind] == [0, n, 2 * n]
            assert before.wait()[0] == n and text.wait() == "behind"
        return errors

    found = threads(n, body)
    assert len(found[1]) == 4 and all(not errors for rank, errors in enumerate(found) if rank != 1)


def test_pickles_are_taken_where_that_is_said():
    def body(comm):
        assert comm.all_gather_object_async({comm.rank}, allow_pickle=True).wait() == [{0}, {1}]
        work = comm.broadcast_object_async({1}, allow_pickle=comm.rank == 0)
        if comm.rank == 0:
            assert work.wait() == {1}
        else:
            with pytest.raises(hocket.InvalidArgument, match="allow_pickle=True"):
                work.wait()
            assert isinstance(work.exception, hocket.InvalidArgument)
        comm.barrier()

    threads(2, body)


# --- Messages -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", RANK_COUNTS)
def test_long_objects_to_all_at_once(n):
    """No rank receives before it has sent, and receives are posted in the order of the messages."""

    def body(comm):
        sizes = [0, 5, 30_000, 7, 90_000]
        for source in (None, hocket.ANY_SOURCE):
            receives = [
                comm.recv_object_async(rank if source is None else source, tag=3)
                for _ in sizes for rank in range(n)
            ]
            sends = [
                comm.send_object_async(object_of(comm.rank, size), rank, tag=3)
                for size in sizes for rank in range(n)
            ]
            found = hocket.wait_all(receives)
            hocket.wait_all(sends)
            for rank in range(n):
                of_rank = [one.object for one in found if one.source == rank]
                assert all(equal(each, rank, size) for each, size in zip(of_rank, sizes, strict=True))
            assert all(one.tag == 3 for one in found)
            comm.barrier()

    threads(n, body)


def test_blocking_and_other_messages_lie_between():
    def body(comm):
        if comm.rank == 0:
            works = [comm.send_object_async(np.arange(50_000), 1), comm.send_async(np.ones(3), 1)]
            comm.send_object("small", 1)
            comm.send_object(b"y" * 1000, 1)
            hocket.wait_all(works)
        else:
            first = comm.recv_object_async(0)
            x = comm.recv_async(np.zeros(3), 0)
            assert comm.recv_object(0).object == "small"
            last = comm.recv_object_async(hocket.ANY_SOURCE, tag=hocket.ANY_TAG)
            assert tuple(last.wait()) == (b"y" * 1000, 0, 0)
            assert x.wait().sum() == 3 and np.array_equal(first.wait().object, np.arange(50_000))

    threads(2, body)


def test_nobody_and_oneself():
    comm = hocket.init(rank=0, size=1)
    assert comm.send_object_async(5, hocket.NULL_RANK).wait() is None
    assert comm.recv_object_async(hocket.NULL_RANK).wait().object is None
    own = comm.recv_object_async(0)
    comm.send_object_async("x" * 5000, 0).wait()
    assert own.wait().object == "x" * 5000


def test_an_array_in_place_of_an_object_ends_that_call_alone():
    def body(comm):
        if comm.rank == 0:
            comm.send(np.zeros(256, "uint8"), 1)
            comm.send_object("after", 1)
        else:
            work, after = comm.recv_object_async(0), comm.recv_object_async(0)
            with pytest.raises(hocket.InvalidArgument, match="tag 0 is an array; it is received by recv"):
                work.wait()
            assert after.wait().object == "after"
        comm.barrier()

    threads(2, body)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"destination": 9}, "destination is 9, expected a rank from 0 to 0"),
        ({"destination": 0, "tag": -3}, "tag is -3"),
        ({"destination": 0, "deadline": 0}, "deadline"),
        ({"destination": "x"}, "destination"),
        ({"destination": 0, "nonsense": 1}, "nonsense"),
    ],
)
def test_wrong_arguments_of_messages(arguments, words):
    comm = hocket.init(rank=0, size=1)
    with pytest.raises((hocket.InvalidArgument, TypeError), match=words):
        comm.send_object_async(1, **arguments)
    with pytest.raises(hocket.InvalidArgument, match="an object"):
        comm.send_object_async(object(), 0)
    with pytest.raises((hocket.InvalidArgument, TypeError), match=words.replace("destination", "source")):
        renamed = {("source" if k == "destination" else k): v for k, v in arguments.items()}
        comm.recv_object_async(**renamed)
    assert comm.barrier() is None


def test_deadlines_hold():
    def body(comm):
        own = comm.duplicate()
        if comm.rank == 1:
            with pytest.raises(hocket.DeadlineExceeded, match="0.2 s"):
                own.recv_object_async(0, deadline=0.2).wait()
        other = comm.duplicate()
        if comm.rank == 0:
            with pytest.raises(hocket.DeadlineExceeded, match="0.2 s"):
                other.all_gather_object_async(1, deadline=0.2).wait()
        comm.barrier()

    threads(2, body)


# --- Under event loops ----------------------------------------------------------------------------


@pytest.mark.parametrize("run", [run_asyncio, run_trio])
def test_they_are_awaited(run):
    async def main(comm):
        assert await comm.all_gather_object_async(comm.rank) == [0, 1, 2]
        assert await comm.broadcast_object_async("from 2", root=2) == "from 2"
        if comm.rank == 0:
            for _ in range(2):
                found = await comm.recv_object_async()
                assert found.object == [found.source] * 2000
        else:
            await comm.send_object_async([comm.rank] * 2000, 0)
        await comm.barrier_async()

    threads(3, lambda comm: run(main, comm))


def test_callbacks_get_the_work():
    def body(comm):
        ended, seen = threading.Event(), []

        def told(work):
            seen.append(work.wait())
            ended.set()

        comm.all_gather_object_async(comm.rank).add_done_callback(told)
        assert ended.wait(20)
        return seen

    assert threads(2, body) == [[[0, 1]]] * 2


# --- Processes ------------------------------------------------------------------------------------

DIES = """
import os, signal
import hocket
comm = hocket.init()
work = comm.recv_object_async(1)
comm.barrier()
if comm.rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
for call in (work.wait, lambda: comm.all_gather_object_async(5).wait()):
    try:
        call()
        print("well")
    except hocket.PeerDied as error:
        print("told of", error.rank)
"""


def test_a_death_is_named():
    done = run_job(3, "-c", DIES, before=["--keep-going"])
    told = [line for line in done.stdout.splitlines() if "told of" in line]
    assert sorted(told) == ["[0] told of 1"] * 2 + ["[2] told of 1"] * 2, done.stdout


RING = """
import numpy as np
import hocket
comm = hocket.init()
to, source = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
for i in range(50):
    came = comm.recv_object_async(source)
    sent = comm.send_object_async({"i": i, "x": np.arange(i * 500) + comm.rank}, to)
    everyone = comm.all_gather_object_async((i, comm.rank))
    found = came.wait()
    assert found.source == source and found.object["i"] == i
    assert np.array_equal(found.object["x"], np.arange(i * 500) + source)
    assert everyone.wait() == [(i, rank) for rank in range(comm.size)]
    sent.wait()
print("whole")
"""


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_between_processes(n):
    done = run_job(n, "-c", RING)
    assert done.stdout.count("whole") == n, done.stdout
