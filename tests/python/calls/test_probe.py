"""Receives of any tag, or of less than there is room for, and probes."""

import itertools
import random
import time

import numpy as np
import pytest
from helpers import threads
from places import PLACES, run_at
from processes import run_job

import hocket

ANY = hocket.ANY_TAG
# Messages of different lengths travel by different ways.
COUNTS = [0, 1, 3, 5_000, 100_000]


def shorter(comm):
    """Each way to receive, for messages that fit and for shorter ones."""
    n, rank = comm.size, comm.rank
    before, after = (rank - 1) % n, (rank + 1) % n
    for count, more, dtype in itertools.product(COUNTS, [0, 1, 5_000], ["float64", "complex64"]):
        x = (np.arange(count) + 1000 * rank).astype(dtype)
        told = hocket.Received(before, 4, count)
        wanted = np.full(count + more, -1, dtype)
        wanted[:count] = np.arange(count) + 1000 * before

        out = np.full(count + more, -1, dtype)
        sent = comm.send_async(x, after, tag=4)
        assert comm.recv(out, before, tag=4, allow_shorter=True) == told
        sent.wait()
        assert np.array_equal(out, wanted)

        out = np.full(count + more, -1, dtype)
        work = comm.recv_async(out, tag=4, allow_shorter=True)
        comm.send(x, after, tag=4)
        assert work.wait() is out and work.received == told
        assert np.array_equal(out, wanted)

        whole = np.full((count + more, 2), -1, dtype)
        sent = comm.send_async(x, after, tag=4)
        assert comm.recv(whole[:, 1], before, ANY, allow_shorter=True) == told
        sent.wait()
        assert np.array_equal(whole[:, 1], wanted) and np.all(whole[:, 0] == -1)

        whole = np.full((count + more, 2), -1, dtype)
        work = comm.recv_async(whole[:, 1], before, tag=4, allow_shorter=True)
        comm.send(x, after, tag=4)
        work.wait()
        assert np.array_equal(whole[:, 1], wanted) and np.all(whole[:, 0] == -1)
    comm.barrier()


def matched(sends, receives):
    """Returns the message that each receive gets, if all are posted before the first is sent."""
    found = [None] * len(receives)
    for number, tag in enumerate(sends):
        for i, wanted in enumerate(receives):
            if found[i] is None and wanted in (tag, ANY):
                found[i] = number
                break
    return found


def any_tag(comm):
    """The order of receives of any tag, against a model; rank 0 gets all."""
    source = comm.size - 1
    for seed in range(30):
        rng = random.Random(seed)
        posts_first = rng.random() < 0.5
        sends = [rng.randrange(3) for _ in range(rng.randrange(1, 9))]
        counts = [rng.choice(COUNTS) for _ in sends]
        # In the order of the receives, so that each has a message.
        receives = [tag if rng.random() < 0.5 else ANY for tag in sends]
        rng.shuffle(receives)
        if None in matched(sends, receives):
            receives = [ANY] * len(sends)
        if comm.rank == 0:
            if not posts_first:
                comm.barrier()
                time.sleep(0.002)
            works = []
            for tag in receives:
                who = rng.choice([source, hocket.ANY_SOURCE])
                out = np.full(100_000, -1.0)
                works.append((out, comm.recv_async(out, who, tag, allow_shorter=True)))
            if posts_first:
                comm.barrier()
            found = []
            for out, work in works:
                work.wait()
                number = int(out[0]) if work.received.count else None
                found.append((work.received.source, work.received.tag, work.received.count, number))
            numbers = matched(sends, receives)
            if posts_first:
                wanted = [(source, sends[i], counts[i], i if counts[i] else None) for i in numbers]
                assert found == wanted, (seed, receives, sends)
            else:
                wanted = [(source, tag, count, i if count else None)
                          for i, (tag, count) in enumerate(zip(sends, counts))]  # fmt: skip
                assert sorted(found, key=str) == sorted(wanted, key=str), seed
        else:
            comm.barrier()
            if comm.rank == source:
                for number, (tag, count) in enumerate(zip(sends, counts)):
                    comm.send(np.full(count, float(number)), 0, tag)
        comm.barrier()


def not_held_up(comm):
    """A receive of any tag passes one from anybody that another message is for."""
    last = comm.size - 1
    if comm.rank == 0:
        a, b, c = np.zeros(1), np.zeros(1), np.zeros(1)
        first = comm.recv_async(a, hocket.ANY_SOURCE, 5)
        second = comm.recv_async(b, last, ANY)
        third = comm.recv_async(c, last, 7)
        comm.barrier()
        second.wait()
        third.wait()
        assert (b[0], second.received.tag, c[0]) == (7.0, 7, 8.0) and not first.test()
        comm.barrier()
        first.wait()
        assert a[0] == 5.0 and first.received == (1, 5, 1)
    else:
        comm.barrier()
        if comm.rank == last:
            comm.send(np.array([7.0]), 0, 7)
            comm.send(np.array([8.0]), 0, 7)
        comm.barrier()
        if comm.rank == 1:
            comm.send(np.array([5.0]), 0, 5)
    comm.barrier()


def probes(world):
    """A probe tells of what the next receive takes, and of nothing that one is there for."""
    comm = world.duplicate()  # which ends
    n, rank = comm.size, comm.rank
    assert comm.probe_now() is None and comm.probe_now(tag=ANY) is None
    comm.barrier()
    for number, (count, dtype) in enumerate(itertools.product(COUNTS, ["float32", "bool"])):
        if rank == 0:
            left = set(range(1, n))
            while left:
                told = comm.probe(tag=ANY)
                assert told == (told.source, number, count, dtype) and told.source in left
                assert comm.probe(told.source, told.tag) == told == comm.probe_now(*told[:2])
                assert comm.probe_now(told.source, number + 1) is None
                out = np.empty(told.count, told.dtype)
                assert comm.recv(out, told.source, told.tag) == told[:3]
                assert np.all(out == np.ones(count, dtype))
                left.remove(told.source)
        else:
            comm.send(np.ones(count, dtype), 0, number)
        comm.barrier()
    # A message that a receive has matched is no longer visible to a probe.
    if rank == 0:
        out = np.zeros(3)
        work = comm.recv_async(out, 1, 1)
        comm.barrier()
        assert comm.probe(1, ANY).tag == 2
        assert comm.probe_now(1, 1) is None
        work.wait()
        comm.recv(out, 1, ANY)
        with pytest.raises(hocket.DeadlineExceeded, match="probe from rank 1 any tag"):
            comm.probe(1, ANY, deadline=0.05)
    else:
        comm.barrier()
        if rank == 1:
            comm.send(np.ones(3), 0, 1)
            comm.send(np.ones(3), 0, 2)
    world.barrier()


def waits_in_a_probe(comm):
    """A probe that begins before anything is sent, beside calls under way."""
    if comm.rank == 0:
        out = np.zeros(4)
        work = comm.recv_async(out, 2, 9)
        told = comm.probe(1, 3)
        assert told == (1, 3, 1_000, "float64")
        comm.recv(np.empty(1_000), 1, 3)
        comm.send(np.zeros(1), 2, 1)
        work.wait()
        assert np.array_equal(out, np.arange(4.0))
    elif comm.rank == 1:
        time.sleep(0.05)
        comm.send(np.zeros(1_000), 0, 3)
    else:
        comm.recv(np.zeros(1), 0, 1)
        comm.send(np.arange(4.0), 0, 9)
    comm.barrier()


def objects(comm):
    """Objects of one message and of two, by any tag; the parts of one stay together."""
    things = [{"a": 1}, np.arange(100_000.0), "x" * 1_000, None]
    if comm.rank == 0:
        seen = {rank: [] for rank in range(1, comm.size)}
        for _ in range(len(things) * len(seen)):
            told = comm.probe(tag=ANY)
            assert (told.count, told.dtype) == (256, "uint8")
            found = comm.recv_object(told.source, ANY)
            assert found.source == told.source and found.tag == told.tag
            seen[found.source].append((found.tag, found.object))
        for rank, came in seen.items():
            assert [tag for tag, _ in came] == [rank + 10 * i for i in range(len(things))]
            for (_, thing), wanted in zip(came, things):
                assert np.array_equal(thing, wanted)
    else:
        for i, thing in enumerate(things):
            comm.send_object(thing, 0, comm.rank + 10 * i)
    comm.barrier()


def to_oneself(comm):
    """Also from the only rank of a host, to which no other rank there sends."""
    comm.barrier()
    for count, source, tag in itertools.product(COUNTS, [comm.rank, hocket.ANY_SOURCE], [2, ANY]):
        x = np.arange(float(count))
        sent = comm.send_async(x, comm.rank, tag=2)
        told = comm.probe(source, tag, deadline=20)
        assert told == (comm.rank, 2, count, "float64")
        assert comm.probe_now(source, tag) == told
        out = np.zeros(count)
        comm.recv(out, told.source, told.tag)
        sent.wait()
        assert np.array_equal(out, x)
        assert comm.probe_now(source, tag) is None
    comm.barrier()


@pytest.mark.parametrize(
    "function",
    [shorter, any_tag, not_held_up, probes, waits_in_a_probe, objects, to_oneself],
    ids=lambda function: function.__name__,
)
@pytest.mark.parametrize("place", PLACES)
def test_everywhere(place, function):
    run_at(place, 3, function)


def test_what_is_refused():
    def body(comm):
        x, other = np.zeros(2), np.zeros(2)
        for wrong, words in [
            (lambda: comm.send(x, 0, ANY), "tag is -1, expected at least 0$"),
            (lambda: comm.send_async(x, 0, ANY), "tag is -1"),
            (lambda: comm.recv(x, 0, allow_shorter="no"), "allow_shorter is a str"),
            (lambda: comm.recv_async(x, 0, allow_shorter=None), "allow_shorter is None"),
            (lambda: comm.recv(x, 0, -2), "tag is -2, expected at least 0, or"),
            (lambda: comm.probe(0, -2), "tag is -2"),
            (lambda: comm.probe(9), "source is 9"),
            (lambda: comm.probe_now(-3), "source is -3"),
            (lambda: comm.send_recv(x, 0, other, tag=ANY), "tag is -1, any"),
            (lambda: comm.exchange([(x, 0)], [(other, 0)], tag=ANY), "tag is -1, any"),
        ]:
            with pytest.raises(hocket.InvalidArgument, match=words):
                wrong()
        assert comm.probe(hocket.NULL_RANK, 3) == (hocket.NULL_RANK, 3, 0, "uint8")
        assert comm.probe_now(hocket.NULL_RANK) is not None
        assert comm.recv(x, hocket.NULL_RANK, ANY, allow_shorter=True)[2] == 0

    threads(1, body)


@pytest.mark.parametrize("extra", [0, 5, 100_000])
def test_a_longer_message_is_a_mismatch(extra):
    sent, wanted = rf"rank 1 called send float64\[{3 + extra}\]", r"rank 0 called recv float64\[2\]"
    words = f"{sent}, {wanted}|{wanted}, {sent}"  # either order, as any rank may report first

    def body(comm):
        if comm.rank == 0:
            with pytest.raises(hocket.Mismatch, match=words):
                comm.recv(np.zeros(2), 1, ANY, allow_shorter=True)
        else:
            with pytest.raises(hocket.Mismatch, match=words):
                comm.send(np.zeros(3 + extra), 0, 4)
                comm.recv(np.zeros(1), 0)

    threads(2, body)


LOST = """
import os, signal, sys
import numpy as np
import hocket
comm = hocket.init()
who = int(sys.argv[2])
if comm.rank == 1:
    comm.send(np.ones(3), 0, 6)
    comm.recv(np.empty(1), 0)  # what has not left the process is lost with it
    os.kill(os.getpid(), signal.SIGKILL)
assert comm.probe(who, 6).count == 3
comm.recv(np.empty(3), who, 6)
comm.send(np.empty(1), 1)
try:
    if sys.argv[1] == "waits":
        comm.probe(who, hocket.ANY_TAG, deadline=20)
    else:
        while comm.probe_now(who, hocket.ANY_TAG) is None:
            pass
except hocket.PeerDied as error:
    print("the loss is heard of:", error, flush=True)
"""


@pytest.mark.parametrize("who", [1, hocket.ANY_SOURCE])
@pytest.mark.parametrize("how", ["waits", "polls"])
@pytest.mark.parametrize("hosts", [1, 2])
def test_who_died_ends_a_probe(how, who, hosts):
    program = LOST
    if hosts == 2:
        program = 'import os; os.environ["HOCKET_HOST"] = os.environ["HOCKET_RANK"] + "/"' + LOST
    job = run_job(2, "-c", program, how, who)
    assert "the loss is heard of: rank 1" in job.stdout, job.stdout
