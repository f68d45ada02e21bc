"""The remedy in each error message is carried out word for word, and gives the right result."""

import ctypes
import re

import numpy as np
import pytest
from helpers import threads

import hocket

OBJECTS = np.array([1, 2.5, 3], object)
DURATIONS = np.array([[1, 5], [7, 2]], "m8[s]")
DIGITS = np.array([1.5, 2.25, 4], np.longdouble)
RECORDS = np.array([(1, 2.5), (3, 4.5)], "i4,f8")
SWAPPED = np.arange(4, dtype=">i4")


def told(call):
    """Returns, from a refused call's message, the expression to call with and the statement
    after it.
    """
    with pytest.raises(hocket.InvalidArgument) as refusal:
        call()
    text = str(refusal.value)
    text = text[max(0, text.find("To combine")) :]  # not how it is sent
    found = re.search(r"[Cc]all with (?:y = )?(.+?)(?:, and after it (.+?) if the call writes to|, in which|; |\. |$)", text)
    assert found, text
    return found[1], found[2]


# Arrays that are written in place: made for each rank, times its number and one.
IN_PLACE = {
    "strided": lambda k: (np.arange(8.0) * k)[::2],
    "rows of columns": lambda k: (np.arange(24.0) * k).reshape(2, 3, 4).swapaxes(0, 1),
    "strided durations": lambda k: (np.arange(8) * k).astype("m8[s]")[::2],
    "strided and swapped": lambda k: (np.arange(8) * k).astype(">f8")[::2],
    "other byte order": lambda k: (SWAPPED * k).astype(">i4"),
    "durations": lambda k: DURATIONS * k,
    "durations in fortran order": lambda k: np.asfortranarray(DURATIONS * k),
    "duration": lambda k: np.array(5 * k, "m8[s]"),
    "long doubles": lambda k: DIGITS * k,
    "long complex": lambda k: (DIGITS * k).astype(np.clongdouble) * (1 + 1j),
    "objects": lambda k: OBJECTS * k,
}


def plain(x):
    """For comparing."""
    return x.astype("int64") if x.dtype.kind == "m" else np.asarray(x.tolist())


@pytest.mark.parametrize("name", IN_PLACE)
def test_reductions_in_place_reach_the_caller_s_array(name):
    def body(comm):
        x = IN_PLACE[name](comm.rank + 1)
        found = x
        for _ in range(3):  # several things may be wrong with it, one after the other
            try:
                comm.all_reduce(found)
                break
            except hocket.InvalidArgument:
                pass
            made, after = told(lambda: comm.all_reduce(found))
            names = {"numpy": np, "x": found}
            y = names["y"] = eval(made, names)
            chain.setdefault(comm.rank, []).append((found, after, y))
            found = y
        for array, after, y in reversed(chain.get(comm.rank, [])):
            if after:
                exec(after, {"x": array, "y": y, "numpy": np})
            else:
                assert np.shares_memory(array, y)
        wanted = sum(plain(IN_PLACE[name](k + 1)) for k in range(comm.size))
        assert np.allclose(plain(x), wanted), (x, wanted)

    chain = {}
    threads(2, body)


MOVED = {
    **IN_PLACE,
    "records": lambda k: np.array([(k, 2.5), (3, k)], "i4,f8"),
    "text": lambda k: np.array(["ab", "c" * k]),
    "bytes": lambda k: np.array([b"ab", b"c" * k]),
    "dates": lambda k: np.array([k, 3], "M8[D]"),
    "columns of records": lambda k: np.asfortranarray(np.full((2, 3), k, "i4,f8")),
    "record": lambda k: np.array((k, 2.5), "i4,f8"),
}
del MOVED["objects"]


def carried_out(call, x, kind="To send it"):
    """Makes the call with `x`, or as the messages say that refuse it, and returns its result."""
    todo, found, result = [], x, None
    for _ in range(4):  # several things may be wrong with it, one after the other
        try:
            result = call(found)
            break
        except hocket.InvalidArgument as error:
            text = str(error)
        text = text[max(0, text.find(kind)) :]
        mend = re.search(
            r"[Cc]all with (?:y = )?(.+?)(?:, and after it (.+?) if the call writes to|, in which|; |\. |$)", text)
        assert mend, text
        y = eval(mend[1], {"numpy": np, "x": found})
        todo.append((found, mend[2], y))
        found = y
    else:
        raise AssertionError(text)
    for array, after, y in reversed(todo):
        if after:
            exec(after, {"x": array, "y": y, "numpy": np})
        else:
            assert np.shares_memory(array, y) or not array.flags.writeable
    return result


@pytest.mark.parametrize("name", MOVED)
def test_broadcasts_reach_the_caller_s_array(name):
    def body(comm):
        x = MOVED[name](comm.rank + 1)
        carried_out(lambda y: comm.broadcast(y, root=1), x)
        wanted = MOVED[name](2)
        assert x.dtype == wanted.dtype and np.array_equal(x, wanted)

    threads(2, body)


# Dtypes that hocket does not take, and elements of which no two are equal.
UNTAKEN = {
    "long doubles": np.arange(1, 7, dtype=np.longdouble) + np.longdouble(2) ** -60,
    "long complex": np.arange(1, 7, dtype=np.clongdouble) * (1 + 2j),
    "records": np.array([(k, k + 0.5) for k in range(6)], "i4,f4"),
    "bytes": np.array([b"%04d" % k for k in range(6)], "S4"),
    "text": np.array([f"{k:03d}" for k in range(6)]),
    "void": np.arange(6, dtype="i8").view("V8"),
    "dates": np.arange(6).astype("M8[D]"),
    "durations": np.arange(6).astype("m8[s]"),
    "swapped durations": np.arange(6).astype(">m8[s]"),
}
LAYOUTS = {
    "rows": lambda values: np.ascontiguousarray(values.reshape(3, 2)),
    "columns": lambda values: np.asfortranarray(values.reshape(3, 2)),
    "a part of rows": lambda values: np.repeat(values, 2).reshape(3, 4)[:, ::2],
    "one column": lambda values: np.repeat(values, 2).reshape(6, 2)[:, 0],
    "backwards": lambda values: np.ascontiguousarray(values[::-1])[::-1],
    "one element": lambda values: values[3:4].reshape(()).copy(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", UNTAKEN)
def test_what_is_received_reaches_the_caller_s_array(name, layout):
    values = UNTAKEN[name]

    def empty():
        return LAYOUTS[layout](np.zeros(6, values.dtype))

    def body(comm):
        wanted = LAYOUTS[layout](values)
        x = wanted.copy("K") if comm.rank == 0 else empty()
        if comm.rank == 0:
            carried_out(lambda y: comm.send(y, 1), wanted)
        else:
            carried_out(lambda y: comm.recv(y, 0), x)
        assert np.array_equal(x, wanted)
        x = wanted if comm.rank == 0 else empty()
        carried_out(comm.broadcast, x)
        assert np.array_equal(x, wanted)

    threads(2, body)


@pytest.mark.parametrize("name", UNTAKEN)
def test_an_order_of_axes_is_kept_where_the_ranks_differ_in_it(name):
    def body(comm):
        wanted = UNTAKEN[name].reshape(2, 3)
        if wanted.dtype.kind in "mM":
            wanted = wanted.astype(wanted.dtype.newbyteorder("="))
        x = wanted.copy() if comm.rank == 0 else np.asfortranarray(np.zeros_like(wanted))
        if wanted.dtype.kind in "mM":  # of which hocket sees the order, and says so
            with pytest.raises(hocket.Error, match="order"):
                comm.broadcast(x.view(np.int64))
            return
        carried_out(comm.broadcast, x)
        assert np.array_equal(x, wanted)

    threads(2, body)


def test_new_arrays_of_bytes_are_read_as_the_message_says():
    def body(comm):
        x = UNTAKEN["records"].reshape(2, 3)
        with pytest.raises(hocket.InvalidArgument) as refusal:
            comm.all_gather(x)
        read = re.search(r"read by (\.view\(.+?\)\[.+?\])", str(refusal.value))[1]
        found = carried_out(comm.all_gather, x)
        assert np.array_equal(eval("found" + read, {"found": found, "x": x}), [x, x])

    threads(2, body)


@pytest.mark.parametrize("dtype", ["m8[s]", "M8[D]"])
def test_no_time_is_told_of(dtype):
    def body(comm):
        x = np.array([5, "NaT" if comm.rank else 7], dtype)
        with pytest.raises(hocket.InvalidArgument) as refusal:
            comm.all_reduce(x, op="max")
        assert "NaT is the least integer there: max passes over it, and sums with it are wrong" in str(refusal.value)
        none = eval(re.search(r"combine (numpy\.isnat\(x\)) by max", str(refusal.value))[1], {"numpy": np, "x": x})
        comm.all_reduce(none, op="max")
        carried_out(lambda y: comm.all_reduce(y, op="max"), x, "Call with")
        x[none] = "NaT"
        assert x[0] == np.array(5, dtype) and np.isnat(x[1])

    threads(2, body)


# Objects, the sum of two ranks' arrays of them, and the dtype that the message offers.
OBJECT_ARRAYS = {
    "floats": ([1.5, 2], "float64"),
    "integers": ([2**62 - 1, -3], "int64"),
    "numbers of numpy": ([np.int32(3), np.float32(0.5)], "float64"),
    "complex": ([1 + 2j, 3], "complex128"),
    "integers of more than 64 bits": ([2**70 + 1, 1], None),
    "floats and an integer with more digits": ([0.5, 2**60 + 1], None),
    "text": (["a", "b"], None),
}


@pytest.mark.parametrize("name", OBJECT_ARRAYS)
def test_objects_keep_their_digits(name):
    objects, dtype = OBJECT_ARRAYS[name]

    def body(comm):
        x = np.array([*objects, None], object)[:-1].copy()
        with pytest.raises(hocket.InvalidArgument) as refusal:
            comm.all_reduce(x)
        text = str(refusal.value)
        assert ("astype" in text) == (dtype is not None)
        if dtype is None:
            call = re.search(r"collect them by (all_gather_object\(.+?\)),", text)[1]
            found = eval("comm." + call, {"comm": comm, "x": x})
            assert all(one.tolist() == objects for one in found)
            return
        assert f"numpy.{dtype}" in text
        carried_out(comm.all_reduce, x, "To combine")
        assert x.tolist() == [2 * one for one in objects]

    threads(2, body)


@pytest.mark.parametrize("call", ["scatter", "reduce_scatter"])
def test_leading_axes(call):
    def body(comm):
        wrong = {
            "Give an array of 2 entries": 3.0,
            "Give an array of 2 entries$": np.array(3.0),
            "3 elements do not divide among 2 ranks; use the _v form": np.ones((1, 3)),
            "Reshape it, or give out=": np.ones((1, 4)),
        }
        if comm.rank == 1 and call == "scatter":
            for text in wrong:
                with pytest.raises(hocket.InvalidArgument):
                    comm.scatter(out=np.ones(1))
            return
        for text, x in wrong.items():
            with pytest.raises(hocket.InvalidArgument, match=text):
                getattr(comm, call)(x)

    threads(2, body)


def test_outs_that_are_numbers():
    def body(comm):
        with pytest.raises(hocket.InvalidArgument, match="out is an int, a number.*; give an array, or leave it away"):
            comm.all_gather(np.ones(2), 0)
        assert comm.all_gather(np.ones(2)).shape == (2, 2)

    threads(2, body)


def test_objects_travel_as_the_message_says():
    def body(comm):
        with pytest.raises(hocket.InvalidArgument, match="broadcast_object and the like, with allow_pickle=True"):
            comm.broadcast(OBJECTS.copy(), root=0)
        found = comm.broadcast_object(OBJECTS if comm.rank == 0 else None, allow_pickle=True)
        assert found.dtype == object and found.tolist() == OBJECTS.tolist()

    threads(2, body)


def test_masks():
    def body(comm):
        x = np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False])
        made, after = told(lambda: comm.all_reduce(x))
        assert after is None
        y = eval(made, {"x": x, "value": 0.5})
        assert np.array_equal(comm.all_reduce(y), [2, 1, 6])

    threads(2, body)


# An array that cannot be written to: the result is in y, and is what the call returns.
READ_ONLY = {
    "broadcast_to": lambda: np.broadcast_to(np.float64(3), 1),
    "broadcast_to rows": lambda: np.broadcast_to(np.arange(3.0), (2, 3)),
    "read-only and strided": lambda: np.frombuffer(bytes([3, 0, 4, 0]), "u1")[::2],
    "read-only and swapped": lambda: np.frombuffer(bytes([0, 3]), ">u2"),
    "read-only": lambda: np.frombuffer(bytes([3, 0, 0, 0]), "int32"),
    "bytes": lambda: bytes([3]),
    "list": lambda: [3, 3.5],
    "tuple of rows": lambda: ((3, 4), (5, 6)),
}


@pytest.mark.parametrize("name", READ_ONLY)
def test_what_cannot_be_written_to(name):
    def body(comm):
        x = READ_ONLY[name]()
        made, after = told(lambda: comm.all_reduce(x))
        assert after is None
        y = eval(made, {"x": x, "numpy": np})
        assert np.array_equal(comm.all_reduce(y), 2 * np.array(x if name != "bytes" else np.frombuffer(x, "u1")))

    threads(2, body)


def test_fortran_order():
    def body(comm):
        x = np.asfortranarray(np.arange(4.0).reshape(2, 2) + 10 * comm.rank)
        rows = [np.arange(4.0).reshape(2, 2) + 10 * rank for rank in range(2)]
        made, _ = told(lambda: comm.all_gather(x))
        assert np.array_equal(comm.all_gather(eval(made, {"x": x, "numpy": np})), rows)
        made, after = told(lambda: comm.all_to_all(x, out=x))
        names = {"x": x, "numpy": np}
        names["y"] = y = eval(made, names)
        comm.all_to_all(y, out=y)
        exec(after, names)
        assert np.array_equal(x, [rows[0][comm.rank], rows[1][comm.rank]])

    threads(2, body)


def test_tensors():
    torch = pytest.importorskip("torch")

    def body(comm):
        for x, wanted in (
            (torch.arange(8.0)[::2], [0, 4, 8, 12]),
            (torch.tensor([1 + 2j, 3 - 1j]).conj().imag, [-4, 2]),
        ):
            with pytest.raises(hocket.InvalidArgument, match="call with a contiguous copy, and copy that back"):
                comm.all_reduce(x)
            y = x.contiguous()
            comm.all_reduce(y)
            x.copy_(y)
            assert x.tolist() == wanted
        for view, wanted in (
            (torch.tensor([1 + 2j, 3 - 1j]).conj(), [2 - 4j, 6 + 2j]),
            (torch.tensor([1 + 2j]).conj().imag, [-4]),
        ):
            made, after = told(lambda: comm.all_reduce(view))  # noqa: B023
            names = {"x": view}
            names["y"] = eval(made, names)
            comm.all_reduce(names["y"])
            exec(after, names)
            assert view.tolist() == wanted

    threads(2, body)


def test_shapes_and_outs():
    def body(comm):
        x = np.arange(3.0)
        with pytest.raises(hocket.InvalidArgument, match="Reshape it, or give out="):
            comm.scatter(np.arange(4.0), root=0) if comm.rank == 0 else comm.scatter(x, np.zeros(2), root=0)
        assert comm.scatter(np.arange(4.0).reshape(2, 2), root=0, out=np.zeros(2)).tolist() == [
            2.0 * comm.rank, 2.0 * comm.rank + 1]
        with pytest.raises(hocket.InvalidArgument, match="pass it as an array of one element"):
            comm.all_gather_v(np.array(5.0))
        assert comm.all_gather_v(np.array([5.0])).tolist() == [5, 5]
        three = np.arange(3.0) + 10 * comm.rank
        with pytest.raises(hocket.InvalidArgument, match="use the _v form"):
            comm.all_to_all(three, out=np.zeros(3))
        assert comm.all_to_all_v(three, [2, 1]).tolist() == [[0, 1, 10, 11], [2, 12]][comm.rank]

    threads(2, body)


def test_too_large_an_integer():
    def body(comm):
        with pytest.raises(hocket.InvalidArgument, match="an int of more than 64 bits; give a float"):
            comm.all_reduce(2**70)
        assert comm.all_reduce(float(2**70)) == 2.0**71
        assert ctypes.c_double(comm.all_reduce(1.5)).value == 3

    threads(2, body)
