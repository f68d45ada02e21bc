"""Arguments other than arrays: numbers, names, switches, paths. The error names the wrong
argument.
"""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import threads

import hocket

LONE = "\udcff"  # what Python makes of a byte that is no UTF-8


class Whole:
    """Says that it is a whole number, as NumPy's integers do."""

    def __index__(self):
        return 1


class Span:
    """Says that it is a time, and says nonsense."""

    def total_seconds(self):
        return "soon"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c: c.barrier(timeout=Span()), r"deadline is a (\w+\.)?Span; give seconds"),
        (lambda c: c.barrier(timeout=10**400), "deadline is too large; math.inf waits"),
        (lambda c: c.broadcast(np.zeros(3), root="1"), "root is a str"),
        (lambda c: c.broadcast(np.zeros(3), root=1.0), "root is a float"),
        (lambda c: c.gather(np.zeros(3), root=None), "root is None"),
        (lambda c: c.all_gather_v(np.zeros(2), counts=[2**63 - 1] * 2), "counts add up to more elements"),
        (lambda c: c.reduce(np.zeros(3), root=2**40), "root is 1099511627776, expected"),
        (lambda c: c.scatter(np.zeros((2, 3)), root=9), "scatter: root is 9, expected a rank from 0 to"),
        (lambda c: c.scatter_v(np.zeros(3), counts=[1, 2], root=-1), "scatter_v: root is -1, expected"),
        (lambda c: c.reduce_scatter(np.zeros((2, 3)), op=None), "op is None"),
        (lambda c: c.scatter_v(np.zeros(3), root=2**100), "root is too large"),
        (lambda c: c.broadcast(np.zeros(3), root=np.zeros(2, int)), "root is a numpy.ndarray"),
        (lambda c: c.barrier(timeout=np.zeros(2)), "deadline is a numpy.ndarray; give seconds"),
        (lambda c: c.barrier(timeout=np.timedelta64(3, "s")), "deadline is a numpy.timedelta64"),
        (lambda c: c.all_reduce(np.zeros(3), stream=-1), "stream is an int"),
        (lambda c: c.broadcast_object(1, root=[0]), "root is a list"),
        (lambda c: c.all_gather_object(1, allow_pickle="no"), "allow_pickle is a str"),
        (lambda c: c.new_group([0, 2**40]), "rank of ranks is 1099511627776"),
        (lambda c: c.new_group("01"), "rank of ranks is a str"),
        (lambda c: c.new_group([0.7]), "rank of ranks is a float"),
        (lambda c: c.split(hash("a name") | 2**40), "color is -?[0-9]+, expected"),
        (lambda c: c.split(0, key="first"), "key is a str"),
        (lambda c: c.all_gather_v(np.zeros(2), counts=[2.0, 2]), r"counts\[0\] is a float"),
        (lambda c: c.all_gather_v(np.zeros(2), counts="22"), r"counts\[0\] is a str"),
        (lambda c: c.all_gather_v(np.zeros(2), counts=2), "counts is an int"),
        (lambda c: c.symmetric.empty((2, 1.5)), r"shape\[1\] is a float"),
        (lambda c: c.symmetric.empty(3, LONE), "dtype holds lone surrogates"),
        (lambda c: c.symmetric.empty(3, memory=LONE), "memory holds lone surrogates"),
        (lambda c: c.all_reduce_coalesced(None), "arrays is None; give a list"),
        (lambda c: c.all_reduce_coalesced(x for x in [np.zeros(2)]), "arrays is a generator"),
        (lambda c: c.hierarchical_all_reduce(np.zeros(2), compressed=2), "compressed is an int"),
        (lambda c: c.send(np.zeros(3), "1"), "destination is a str"),
        (lambda c: c.recv(np.zeros(3), 2**40), "source is 1099511627776"),
        (lambda c: c.send(np.zeros(3), 0, tag=None), "tag is None"),
        (lambda c: c.send(np.zeros(3), 0, tag=2**31), "tag is 2147483648, expected at most 2147483647$"),
        (lambda c: c.send(np.zeros(3), 0, tag=-(2**40)), "tag is -10995[0-9]*, expected a .* 32 bits$"),
        (lambda c: c.send(np.zeros(3), 0, tag=-(2**70)), "tag is too small, expected"),
        (lambda c: c.send(np.zeros(3), 0, tag=-1), "tag is -1, expected at least 0$"),
        (lambda c: c.recv(np.zeros(3), 0, tag=-2), "tag is -2, expected at least 0, or -1 for any$"),
        (lambda c: c.send(np.zeros(3), 9), "destination is 9, expected a rank .*, or -2 for nobody$"),
        (lambda c: c.send_recv(np.zeros(3), 0, source=0.5), "source is a float"),
        (lambda c: c.exchange([(np.zeros(3), 2**40)], []), r"outgoing\[0\]'s rank is 10995"),
        (lambda c: c.abort(None), "reason is None"),
        (lambda c: c.refuse(3), "reason is an int"),
        (lambda c: c.new_group(3), "ranks is an int; give a list of ranks"),
        (lambda c: c.exchange(3, []), "outgoing is an int; give a list of pairs"),
        (lambda c: c.exchange([], None), "incoming is None; give a list of pairs"),
        (lambda c: c.scatter_object(3, root=c.rank), "objects is an int; give a list of objects"),
        (lambda c: c.dump("a\0b"), "directory holds a zero byte"),
        (lambda c: hocket.init(rank="0", size=1), "rank is a str"),
        (lambda c: hocket.init(rank=0, size=2**40), "size is 1099511627776"),
        (lambda c: hocket.init(address=LONE, rank=0, size=2), "address holds lone surrogates"),
        (lambda c: hocket.init(address=5, rank=0, size=2), "address is an int"),
        (lambda c: hocket.init(engines="shm"), "engines is a str; give a list"),
        (lambda c: hocket.init(engines=[LONE]), r"engines\[0\] holds lone surrogates"),
        (lambda c: hocket.run_threads(print, 2**31), "n is 2147483648"),
        (lambda c: hocket.DevicePool("x"), "workers is a str"),
    ],
)
def test_refused_by_name(call, words):
    def body(comm):
        with pytest.raises(hocket.InvalidArgument, match=words):
            call(comm)
        assert comm.all_reduce(np.ones(1))[0] == 2  # still good, and in step

    threads(2, body)


def test_a_refusal_that_gives_no_reason_is_one():
    def body(comm):
        if comm.rank == 1:
            with pytest.raises(hocket.InvalidArgument, match="reason is an int"):
                comm.refuse(3)
        else:
            with pytest.raises(hocket.InvalidArgument, match="rank 1 refused .*reason is an int"):
                comm.barrier()
        assert comm.all_reduce(np.ones(1))[0] == 2

    threads(2, body)


def test_what_counts_as_a_number():
    def body(comm):
        for root in (np.int8(1), np.uint64(1), np.array(1), True, Whole()):
            assert comm.broadcast(np.full(2, comm.rank), root=root)[0] == 1
        assert comm.all_gather_v(np.ones(2), counts=np.array([2, 2], "int16")).shape == (4,)
        assert comm.new_group(np.arange(2)).size == 2
        comm.barrier(timeout=np.float32(30))
        comm.barrier(timeout=np.int64(30))
        assert comm.all_gather_object(1, allow_pickle=np.True_) == [1, 1]
        assert comm.symmetric.empty(np.int64(3)).shape == (3,)

    threads(2, body)


def test_a_root_that_one_rank_gets_wrong():
    """The root waits for it, and hears; who has given its part to the root may be done."""

    def body(comm):
        if comm.rank == 0:
            with pytest.raises(hocket.InvalidArgument, match="rank 1 refused .*root is a str"):
                comm.gather(np.zeros(2), root=0)
        elif comm.rank == 1:
            with pytest.raises(hocket.InvalidArgument, match="root is a str"):
                comm.gather(np.zeros(2), root="0")
        else:
            with contextlib.suppress(hocket.InvalidArgument):
                comm.gather(np.zeros(2), root=0)
        assert comm.all_reduce(np.ones(1))[0] == 3

    threads(3, body)


class Raises:
    """An object with Python code that raises at every access."""

    def __init__(self, error):
        self.error = error

    def __index__(self):
        raise self.error

    def __dlpack__(self, **kwargs):
        raise self.error

    def __dlpack_device__(self):
        return (1, 0)


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RuntimeError("not today"), "RuntimeError: not today;"),
        (KeyError("näme"), "KeyError: 'näme';"),
        (RuntimeError(f"a {LONE} b"), r"RuntimeError: a \\udcff b;"),
        (KeyboardInterrupt(), "KeyboardInterrupt;"),
        (Mute(), "test_arguments.Mute;"),
    ],
)
def test_what_an_argument_raises_is_told_to_the_others(error, words):
    def body(comm):
        for call in (
            lambda wrong: comm.broadcast(np.zeros(2), root=wrong or 0),
            lambda wrong: comm.all_reduce(wrong or np.zeros(2)),
        ):
            if comm.rank == 0:
                with pytest.raises(type(error)) as caught:
                    call(Raises(error))
                assert caught.value is error
            else:
                with pytest.raises(hocket.InvalidArgument, match=f"rank 0 refused .*: {words}"):
                    call(None)
        assert comm.all_reduce(np.ones(1))[0] == 2

    threads(2, body)


def test_masks_are_not_lost():
    """A masked array's data would travel as if nothing were masked."""

    def body(comm):
        x = np.ma.masked_array([1.0, 2.0], mask=[False, True])
        with pytest.raises(hocket.InvalidArgument, match="holds a .*MaskedArray"):
            comm.all_gather_object(x)
        for call in (comm.all_reduce, comm.all_gather):
            with pytest.raises(hocket.InvalidArgument, match="has a mask.*filled"):
                call(x)
        with pytest.raises(hocket.InvalidArgument, match="out has a mask"):
            comm.all_reduce(np.zeros(2), out=x)
        plain = np.ma.masked_array([1.0, 2.0])
        assert comm.all_reduce(plain) is plain and plain.tolist() == [2.0, 4.0]
        (first, second) = comm.all_gather_object(x, allow_pickle=True)
        assert first.mask.tolist() == second.mask.tolist() == [False, True]

    threads(2, body)


def test_arrays_that_only_pickle_carries():
    def body(comm):
        for x in (
            np.array(["2026-11-22"], "M8[D]"),
            np.array([{"a": 1}, None], dtype=object),
            np.zeros(2, "f4,i8"),
        ):
            with pytest.raises(hocket.InvalidArgument, match="dtype"):
                comm.all_gather_object(x)
            for y in comm.all_gather_object([x], allow_pickle=True):
                assert y[0].dtype == x.dtype and y[0].tolist() == x.tolist()

    threads(2, body)


class Odd:
    """Says of a GPU's memory what means nothing."""

    __cuda_array_interface__ = {"shape": None, "typestr": 5, "data": "x", "version": 3}


def test_an_array_that_describes_itself_badly():
    def body(comm):
        with pytest.raises(hocket.InvalidArgument, match=r"x is an? (\w+\.)?Odd, which describes its memory"):
            comm.all_reduce(Odd())
        for wrong in ({"shape": (-3,)}, {"shape": (2, 3), "strides": (8,)}):
            odd = Odd()
            odd.__cuda_array_interface__ = {"typestr": "<f8", "data": (4096, False), **wrong}
            with pytest.raises(hocket.InvalidArgument, match="shape and strides are not those"):
                comm.all_reduce(odd)
        for typestr in ("<fx", "<f-8", "<f99999999999", "<i536870913", "<f8x", "<V8"):
            odd = Odd()
            odd.__cuda_array_interface__ = {"typestr": typestr, "data": (4096, False), "shape": (3,)}
            with pytest.raises(hocket.InvalidArgument, match=f'elements of type "{typestr}"'):
                comm.all_reduce(odd)

    threads(2, body)


class Interrupted:
    def __iter__(self):
        raise KeyboardInterrupt


def test_an_exception_of_an_iterator_is_raised_as_it_is():
    def body(comm):
        with pytest.raises(KeyboardInterrupt):
            comm.all_gather_v(np.ones(3), counts=Interrupted())
        with pytest.raises(KeyboardInterrupt):
            hocket.init(rank=0, size=1, engines=Interrupted())

    threads(1, body)


def test_another_rank_s_memory_has_no_peers():
    """Its place would be taken for one in this rank's own, and lie outside of all."""

    def body(comm):
        mine = comm.symmetric.empty(4)
        theirs = comm.symmetric.peer(mine, 1 - comm.rank)
        with pytest.raises(hocket.InvalidArgument, match="this rank's own memory"):
            comm.symmetric.peer(theirs, comm.rank)
        assert comm.symmetric.peer(mine[1:], 1 - comm.rank).shape == (3,)
        comm.barrier()

    threads(2, body)


def test_names_of_files_may_be_any_bytes(tmp_path):
    folder = os.fsencode(tmp_path / "f\u00fcr") + b"\xff"

    def body(comm):
        for directory in (folder, os.fsdecode(folder), Path(os.fsdecode(folder))):
            written = comm.dump(directory)
            assert os.path.dirname(os.fsencode(written)) == folder and os.path.exists(written)
        with pytest.raises(hocket.RendezvousError, match="none"):
            hocket.init(rank=0, size=2, address="127.0.0.1:1", key=os.fsdecode(folder) + "/none")

    threads(1, body)


def test_text_that_is_no_utf8_is_shown():
    """Also of a reason that was cut in the middle of a character."""
    environment = {**os.environb, b"HOCKET_LOG": b"\xff\xfe"}
    done = subprocess.run(
        [sys.executable, "-c", "import hocket; hocket.init()"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert r"InvalidArgument: HOCKET_LOG=\xff\xfe is not one of" in done.stderr

    def body(comm):
        for pad in range(2):
            group = comm.duplicate()
            group.abort("x" * pad + "\u00fc" * 1000)
            with pytest.raises(hocket.Aborted, match="\u00fc\u00fc"):
                group.barrier()
            assert "\u00fc\u00fc" in group.status.message

    threads(2, body)
