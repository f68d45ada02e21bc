"""broadcast, gathers, scatters, all_to_all, their v-forms, messages, barrier."""

import numpy as np
import pytest
from helpers import DTYPES, RANK_COUNTS, threads, values
from processes import run_job

import hocket


@pytest.mark.parametrize("n", RANK_COUNTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype_moves(n, dtype):
    def body(comm):
        x = values(comm.rank, 23, dtype)
        assert np.array_equal(comm.broadcast(x.copy(), root=n - 1), values(n - 1, 23, dtype))
        whole = comm.all_gather(x)
        assert whole.dtype == dtype and whole.shape == (n, 23)
        for rank in range(n):
            assert np.array_equal(whole[rank], values(rank, 23, dtype))

    threads(n, body)


@pytest.mark.parametrize("n", RANK_COUNTS)
def test_all_gather_and_gather(n):
    wanted = np.stack([values(rank, (4, 3), "int32") for rank in range(n)])

    def body(comm):
        x = values(comm.rank, (4, 3), "int32")
        assert np.array_equal(comm.all_gather(x), wanted)
        assert np.array_equal(comm.all_gather_async(x).wait(), wanted)
        out = np.empty(12 * n, "int32")
        assert comm.all_gather(x, out=out) is out
        assert np.array_equal(out, wanted.ravel())
        place = np.zeros_like(wanted)
        place[comm.rank] = x
        assert comm.all_gather(place[comm.rank], out=place) is place
        assert np.array_equal(place, wanted)
        for root in range(n):
            found = comm.gather(x, root=root)
            waited = comm.gather_async(x, root=root).wait()
            place = np.zeros_like(wanted)
            place[root] = values(root, (4, 3), "int32")
            comm.gather(place[root] if comm.rank == root else x, out=place, root=root)
            if comm.rank == root:
                assert all(np.array_equal(a, wanted) for a in (found, waited, place))
            else:
                assert found is None and waited is None

    threads(n, body)


@pytest.mark.parametrize("n", RANK_COUNTS)
def test_scatter_and_all_to_all(n):
    def body(comm):
        for root in range(n):
            whole = values(root, (n, 5), "float32")
            out = np.empty(5, "float32")
            if comm.rank == root:
                assert np.array_equal(comm.scatter(whole, root=root), whole[root])
                comm.scatter(whole, out=whole[root], root=root)
                comm.scatter_async(whole, out=out, root=root).wait()
            else:
                assert comm.scatter(out=out, root=root) is out
                assert np.array_equal(out, whole[comm.rank])
                comm.scatter(out=out, root=root)
                out[:] = -1
                comm.scatter_async(out=out, root=root).wait()
            assert np.array_equal(out, values(root, (n, 5), "float32")[comm.rank])
        x = values(comm.rank, (n, 7), "int64")
        wanted = np.stack([values(rank, (n, 7), "int64")[comm.rank] for rank in range(n)])
        assert np.array_equal(comm.all_to_all(x), wanted)
        assert np.array_equal(comm.all_to_all_async(x).wait(), wanted)
        assert comm.all_to_all(x, out=x) is x
        assert np.array_equal(x, wanted)

    threads(n, body)


def test_prepared():
    def body(comm):
        n, rank = comm.size, comm.rank
        x, part, own = np.empty((n, 4)), np.empty(4), np.empty((n, 4))
        whole = np.empty((n, 4))
        calls = [
            comm.prepare_all_gather(x[rank], out=whole),
            comm.prepare_gather(x[rank], out=whole, root=1),
            comm.prepare_scatter(x, out=part, root=2),
            comm.prepare_all_to_all(x),
            comm.prepare_all_to_all(own, out=own),
        ]
        for step in range(5):
            every = [values(r + step, (n, 4), "float64") for r in range(n)]
            crossed = np.stack([a[rank] for a in every])
            x[:] = own[:] = every[rank]
            whole[:] = -1
            assert calls[0]() is whole
            assert np.array_equal(whole, np.stack([a[r] for r, a in enumerate(every)]))
            whole[:] = -1
            assert calls[1].start().wait() is (whole if rank == 1 else None)
            if rank == 1:
                assert np.array_equal(whole, np.stack([a[r] for r, a in enumerate(every)]))
            assert calls[2]() is part and np.array_equal(part, every[2][rank])
            assert np.array_equal(calls[3](), crossed)
            assert calls[4]() is own and np.array_equal(own, crossed)

    threads(3, body)


def rows(rank):
    """A rank's own number of rows; rank 1 has none."""
    return (rank * 2 + 3) % 5 if rank != 1 else 0


@pytest.mark.parametrize("n", RANK_COUNTS)
def test_parts_are_gathered(n):
    counts = [rows(rank) for rank in range(n)]
    wanted = np.concatenate([values(rank, (rows(rank), 3), "float32") for rank in range(n)])

    def body(comm):
        x = values(comm.rank, (rows(comm.rank), 3), "float32")
        assert np.array_equal(comm.all_gather_v(x), wanted)
        assert np.array_equal(comm.all_gather_v(x, counts=counts), wanted)
        out = np.empty_like(wanted)
        assert comm.all_gather_v(x, out=out) is out
        assert np.array_equal(out, wanted)
        assert np.array_equal(comm.all_gather_v_async(x).wait(), wanted)
        for root in range(n):
            for found in (comm.gather_v(x, root=root), comm.gather_v(x, counts=counts, root=root),
                          comm.gather_v_async(x, root=root).wait()):
                assert np.array_equal(found, wanted) if comm.rank == root else found is None

    threads(n, body)


@pytest.mark.parametrize("n", RANK_COUNTS)
def test_parts_are_handed_out(n):
    counts = [rows(rank) for rank in range(n)]
    cuts = np.cumsum([0, *counts])

    def body(comm):
        rank = comm.rank
        for root in range(n):
            whole = values(root, (sum(counts), 2), "int16")
            out = np.empty((counts[rank], 2), "int16")
            comm.scatter_v(whole if rank == root else None, counts=counts, out=out, root=root)
            assert np.array_equal(out, whole[cuts[rank] : cuts[rank + 1]])
        whole = sum(values(r, (sum(counts), 2), "int16") for r in range(n))
        x = values(rank, (sum(counts), 2), "int16")
        found = comm.reduce_scatter_v(x, counts=counts)
        assert np.array_equal(found, whole[cuts[rank] : cuts[rank + 1]])
        out = np.empty((counts[rank], 2), "int16")
        assert comm.reduce_scatter_v(x, out=out) is out
        assert np.array_equal(out, found)
        assert np.array_equal(comm.reduce_scatter_v(x), np.array_split(whole, n)[rank])
        # Rank i has i + j rows for rank j.
        sent = [rank + j for j in range(n)]
        x = values(rank, (sum(sent), 2), "uint8")
        pieces = []
        for source in range(n):
            theirs = [source + j for j in range(n)]
            start = sum(theirs[:rank])
            pieces.append(values(source, (sum(theirs), 2), "uint8")[start : start + theirs[rank]])
        wanted = np.concatenate(pieces)
        assert np.array_equal(comm.all_to_all_v(x, sent), wanted)
        assert np.array_equal(comm.all_to_all_v(x, sent, out_counts=sent), wanted)
        assert np.array_equal(comm.all_to_all_v_async(x, sent).wait(), wanted)

    threads(n, body)


def scattered(counts, dtype):
    """Arrays of these sizes in one memory, the last first and with gaps; and one in a gap."""
    memory = np.zeros(sum(counts) + 5 * len(counts) + 40, dtype)
    parts, at = [], memory.size
    for count in counts:
        at -= count + 2
        parts.append(memory[at : at + count])
    return parts, memory[:20]


@pytest.mark.parametrize("n", RANK_COUNTS)
@pytest.mark.parametrize("dtype", ["float64", "uint8"])
def test_parts_may_lie_anywhere(n, dtype):
    """Lists of arrays, where the other ranks have one array for all."""
    counts = [rows(rank) for rank in range(n)]

    def gathers(comm):
        mine = values(comm.rank, counts[comm.rank], dtype)
        parts, _ = scattered(counts, dtype)
        out = parts if comm.rank % 2 == 0 else None
        found = comm.all_gather_v(mine, out=out, counts=counts)
        whole = np.concatenate(found) if out is found else found
        assert np.array_equal(whole, np.concatenate([values(r, counts[r], dtype) for r in range(n)]))
        for root in range(n):
            parts, _ = scattered(counts, dtype)
            work = comm.gather_v_async(mine, out=tuple(parts), root=root)
            assert (work.wait() is None) == (comm.rank != root)
            for r, part in enumerate(parts):
                wanted = values(r, counts[r], dtype) if comm.rank == root else 0
                assert np.array_equal(part, np.broadcast_to(wanted, part.shape))

    def hands_out(comm):
        rank = comm.rank
        for root in range(n):
            parts, _ = scattered(counts, dtype)
            for r, part in enumerate(parts):
                part[:] = values(r + root, counts[r], dtype)
            out = np.empty(counts[rank], dtype)
            assert comm.scatter_v(parts if rank == root else None, out=out, root=root) is out
            assert np.array_equal(out, values(rank + root, counts[rank], dtype))
        sent, _ = scattered([rank + j for j in range(n)], dtype)
        for r, part in enumerate(sent):
            part[:] = values(3 * rank + r, rank + r, dtype)
        came, _ = scattered([rank + j for j in range(n)], dtype)
        assert comm.all_to_all_v(sent, out=came, out_counts=[rank + j for j in range(n)]) is came
        whole = comm.all_to_all_v(sent)  # asks how much comes
        assert np.array_equal(whole, np.concatenate(came))
        for r, part in enumerate(came):
            assert np.array_equal(part, values(3 * r + rank, rank + r, dtype))

    threads(n, gathers)
    threads(n, hands_out)


LISTS_OF_PROCESSES = """
import hocket
import numpy as np

comm = hocket.init()
rank, n = comm.rank, comm.size
counts = [100_003 * (r + 1) for r in range(n)]  # more than a chunk

def part(r, to=0):
    return np.arange(counts[r], dtype="int32") * (r + 2) + to

out = [np.empty(count, "int32") for count in reversed(counts)][::-1]
comm.all_gather_v(part(rank), out=out, counts=counts)
for r in range(n):
    assert np.array_equal(out[r], part(r)), r
gathered = [np.empty(count, "int32") for count in counts]
comm.gather_v(part(rank), out=gathered if rank == 1 else None, counts=counts, root=1)
assert rank != 1 or all(np.array_equal(gathered[r], part(r)) for r in range(n))
own = np.empty(counts[rank], "int32")
comm.scatter_v([part(r, 5) for r in range(n)] if rank == 1 else None, out=own, root=1)
assert np.array_equal(own, part(rank, 5))
came = [np.empty(counts[rank], "int32") for _ in range(n)]
comm.all_to_all_v_async(
    [part(r, 10 * rank) for r in range(n)], out=came, out_counts=[counts[rank]] * n
).wait()
for r in range(n):
    assert np.array_equal(came[r], part(rank, 10 * r)), r
print("right")
"""


@pytest.mark.parametrize("n", [2, 3])
def test_lists_of_processes(n):
    job = run_job(n, "-c", LISTS_OF_PROCESSES, before=["--bind", "none"])
    assert job.returncode == 0, job.stderr
    assert job.stdout.count("right") == n


def test_an_array_may_lie_between_the_parts():
    def body(comm):
        memory = np.zeros(30)
        memory[10:20] = comm.rank + 1  # what is sent
        comm.all_gather_v(memory[10:20], out=[memory[:10], memory[20:]], counts=[10, 10])
        assert np.array_equal(memory, np.repeat([1.0, comm.rank + 1, 2], 10))
        own = [memory[:10], memory[20:]]
        own[comm.rank][:] = 7 + comm.rank
        comm.all_gather_v(own[comm.rank], out=own, counts=[10, 10])  # in place
        assert memory[0] == 7 and memory[29] == 8
        with pytest.raises(hocket.InvalidArgument, match="overlap|refused"):
            comm.all_gather_v(memory[5:15], out=own, counts=[10, 10])

    threads(2, body)


BYTES = np.zeros(40, "uint8")
LISTS_REFUSED = {
    "a list of 3 arrays": lambda c: c.all_to_all_v([np.zeros(1)] * 3, out=[np.zeros(1)] * 2),
    "out is a list of 1": lambda c: c.all_gather_v(np.zeros(2), out=[np.zeros(2)], counts=[2, 2]),
    "out[1] has 3 elements, expected 2": lambda c: c.all_gather_v(
        np.zeros(2), out=[np.zeros(2), np.zeros(3)], counts=[2, 2]),
    "x[1] is float32 and x[0] is float64": lambda c: c.all_to_all_v(
        [np.zeros(1), np.zeros(1, "float32")]),
    "x[1] does not begin at a whole number": lambda c: c.all_to_all_v(
        [BYTES[:8].view("int64"), BYTES[12:20].view("int64")]),
    "counts are not what": lambda c: c.all_to_all_v([np.zeros(1), np.zeros(2)], [2, 1]),
    "wants counts": lambda c: c.all_to_all_v(np.zeros(4)),
    "out[0]": lambda c: c.all_gather_v(np.zeros(2), out=[None, np.zeros(2)], counts=[2, 2]),
    "out[1] is read-only": lambda c: c.all_gather_v(
        np.zeros(2), out=[np.zeros(2), np.broadcast_to(np.zeros(1), 1)], counts=[2, 2]),
    "x[0] is in Fortran order": lambda c: c.all_to_all_v([np.zeros((2, 3)).T, np.zeros(6)]),
}


@pytest.mark.parametrize("words", LISTS_REFUSED)
def test_lists_that_are_refused(words):
    def body(comm):
        with pytest.raises((hocket.InvalidArgument, TypeError)) as caught:
            LISTS_REFUSED[words](comm)
        assert words in str(caught.value) or "refused" in str(caught.value)
        assert comm.all_reduce(np.ones(1))[0] == 2

    threads(2, body)


def test_messages():
    def body(comm):
        n, rank = comm.size, comm.rank
        after, before = (rank + 1) % n, (rank - 1) % n
        out = np.empty(40, "float32")
        received = comm.send_async(values(rank, 40, "float32"), after, tag=3), comm.recv(out, before, tag=3)
        received[0].wait()
        assert received[1] == hocket.Received(before, 3, 40)
        assert np.array_equal(out, values(before, 40, "float32"))
        assert np.array_equal(comm.send_recv(values(rank, 9), after, source=before), values(before, 9))
        partner = rank ^ 1
        if partner < n:
            x = values(rank, 9)
            assert comm.send_recv(x, partner, out=x) is x
            assert np.array_equal(x, values(partner, 9))
        if rank == 0:
            sources = {comm.recv(np.empty(2), hocket.ANY_SOURCE, tag=9).source for _ in range(n - 1)}
            assert sources == set(range(1, n))
            work = comm.recv_async(np.empty(3), source=1)
            assert np.array_equal(work.wait(), values(1, 3))
        else:
            comm.send(values(rank, 2), 0, tag=9)
            if rank == 1:
                comm.send(values(rank, 3), 0)
        comm.barrier()
        comm.barrier_async().wait()

    threads(4, body)


def test_an_exchange_has_any_number_of_messages():
    def body(comm):
        n, rank = comm.size, comm.rank
        for count in (0, 3, 1 << 16):
            def message(source, target, k, count=count):
                return np.full(count, 100 * source + 10 * target + k, "float32")

            out = [(message(rank, peer, k), peer) for peer in range(n) for k in range(2)]
            came = [(np.empty(count, "float32"), peer) for peer in reversed(range(n)) for _ in range(2)]
            assert comm.exchange(out, came, tag=2) is None
            for i, (x, peer) in enumerate(came):
                assert np.array_equal(x, message(peer, rank, i % 2))
            x = values(rank, count)
            comm.exchange([(x, (rank + 1) % n)], [(x, (rank - 1) % n)])
            assert np.array_equal(x, values((rank - 1) % n, count))
        for bad in ([(x, n)], [(x,)], [x], [(x, "all")]):
            with pytest.raises(hocket.InvalidArgument, match="expected a rank|not a pair|whole number"):
                comm.exchange(bad, [])
        comm.barrier()

    threads(3, body)


@pytest.mark.parametrize("count", [8, 1000, 100_000, 1_000_000])
def test_what_is_overwritten_by_what_comes_is_sent_as_it_was(count):
    """The two arrays may overlap anywhere."""

    def body(comm):
        other = 1 - comm.rank
        for shift in (0, 1, count // 2):
            for whom in ((other, None), (other, other), (comm.rank, comm.rank)):
                x = np.arange(2.0 * count) + comm.rank * 1e7
                sender = whom[0] if whom[1] is None else whom[1]
                came = comm.send_recv(x[:count], whom[0], out=x[shift : shift + count], source=whom[1])
                assert np.array_equal(came, np.arange(float(count)) + sender * 1e7)

    threads(2, body)
