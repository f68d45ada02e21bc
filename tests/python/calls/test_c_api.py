"""hocket/c.h as Python's ctypes sees it: with no compiler that checks types, and beside ranks that
are Python's own."""

import ctypes
import re
import textwrap

import pytest
from helpers import ROOT, fortran_module
from processes import BUILD, run_job

LIBRARY = BUILD / "lib" / "libhocket.so"
HEADERS = [ROOT / "include" / "hocket" / name for name in ("c.h", "c_calls.h", "c_grid.h", "c_membership.h", "c_operators.h")]

needs_library = pytest.mark.skipif(
    not LIBRARY.exists(), reason=f"this package was built without a shared library ({LIBRARY})"
)

PRELUDE = f'''
import ctypes
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p

class Array(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("count", c_size_t), ("dtype", c_int32), ("memory", c_int32)]

class CallOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("deadline_ns", c_int64), ("stream", c_void_p),
                ("on_stream", c_int32)]

library = ctypes.CDLL("{LIBRARY}")
library.hocket_error_message.restype = c_char_p

def ok(code):
    assert code == 0, (code, library.hocket_error_message())

def message():
    return library.hocket_error_message().decode()
'''


def job(n, program):
    run = run_job(n, "-c", PRELUDE + textwrap.dedent(program))
    assert run.returncode == 0, run.stdout
    return run.stdout


@needs_library
def test_calls_and_refusals():
    job(
        3,
        """
        world, rank, size = c_void_p(), c_int(), c_int()
        ok(library.hocket_init(None, byref(world)))
        ok(library.hocket_comm_rank(world, byref(rank)))
        ok(library.hocket_comm_size(world, byref(size)))
        r, n = rank.value, size.value
        x = (ctypes.c_float * 3)(*[10 * r + i for i in range(3)])
        array = Array(ctypes.addressof(x), 3, 11, 1)
        options = CallOptions(ctypes.sizeof(CallOptions), 20 * 10**9)
        ok(library.hocket_all_reduce(world, None, byref(array), 0, byref(options)))
        assert list(x) == [sum(10 * q + i for q in range(n)) for i in range(3)], list(x)

        work, done = c_void_p(), c_int()
        ok(library.hocket_broadcast_async(world, None, byref(array), 1, None, byref(work)))
        ok(library.hocket_work_wait(work))
        ok(library.hocket_work_test(work, byref(done)))
        assert done.value == 1
        # Handles look alike here, and are told apart there.
        assert library.hocket_barrier(work, None) == 1 and "is no hocket_comm" in message()
        library.hocket_work_free(byref(work))
        assert not work.value
        assert library.hocket_work_wait(work) == 1 and "is null" in message()

        array.dtype = 23
        assert library.hocket_all_reduce(world, None, byref(array), 0, None) == 1
        assert "dtype is 23" in message(), message()
        options.size = 0
        assert library.hocket_barrier(world, byref(options)) == 1 and "size is 0" in message()
        ok(library.hocket_barrier(world, None))
        ok(library.hocket_comm_close(world))
        assert library.hocket_barrier(world, None) == 1 and "closed" in message()
        library.hocket_comm_free(byref(world))
        """,
    )


@needs_library
def test_the_switch_of_audits(tmp_path):
    job(
        1,
        f"""
        import os
        os.chdir("{tmp_path}")
        world, audited = c_void_p(), c_int(-1)
        ok(library.hocket_init(None, byref(world)))
        ok(library.hocket_comm_audited(world, byref(audited)))
        assert audited.value == 0 and not os.listdir()
        for wanted in (1, 0, 1):
            ok(library.hocket_comm_set_audited(world, wanted))
            ok(library.hocket_comm_audited(world, byref(audited)))
            assert audited.value == wanted
        assert os.listdir("hocket-audit") == ["rank-0.audit"]
        """,
    )


@needs_library
def test_c_beside_python():
    """Rank 0 speaks Python, the others C; both mean the same calls and the same objects."""
    job(
        2,
        """
        import os, pickle
        if os.environ["HOCKET_RANK"] == "0":
            import hocket, numpy as np
            comm = hocket.init()
            x = np.arange(4, dtype="float32")
            comm.all_reduce(x)
            assert x.tolist() == [7, 9, 11, 13], x
            assert comm.broadcast_object(None, root=1) == b"from C"
            assert comm.broadcast_object({"rate": 0.5}) == {"rate": 0.5}
            assert comm.all_gather_object("Python") == ["Python", {"rate": 0.5}]
            y = np.zeros(2, dtype="int64")
            comm.recv(y, 1, tag=3)
            assert y.tolist() == [5, 6]
            comm.barrier()
        else:
            world, got = c_void_p(), c_void_p()
            ok(library.hocket_init(None, byref(world)))
            x = (ctypes.c_float * 4)(7, 8, 9, 10)
            ok(library.hocket_all_reduce(world, None, byref(Array(ctypes.addressof(x), 4, 11, 1)), 0,
                                         None))
            mine, kind, data, length = c_void_p(), c_int(), c_void_p(), c_size_t()
            ok(library.hocket_object_from_bytes(b"from C", c_size_t(6), byref(mine)))
            ok(library.hocket_broadcast_object(world, mine, 1, None, byref(got)))
            # What C has no type for is passed on as it is.
            ok(library.hocket_broadcast_object(world, None, 0, None, byref(got)))
            ok(library.hocket_object_kind(got, byref(kind)))
            assert kind.value == 3
            assert library.hocket_object_bytes(got, byref(data), byref(length)) == 1
            all = (c_void_p * 2)()
            ok(library.hocket_all_gather_object(world, got, None, all, c_size_t(2)))
            ok(library.hocket_object_bytes(c_void_p(all[0]), byref(data), byref(length)))
            assert ctypes.string_at(data.value, length.value) == b"Python"
            y = (c_int64 * 2)(5, 6)
            ok(library.hocket_send(world, byref(Array(ctypes.addressof(y), 2, 4, 1)), 0, 3, None))
            ok(library.hocket_barrier(world, None))
            library.hocket_comm_free(byref(world))
        """,
    )


@needs_library
def test_threads_have_errors_of_their_own():
    job(
        1,
        """
        import threading
        assert library.hocket_barrier(None, None) == 1 and "comm is null" in message()
        seen = []
        thread = threading.Thread(target=lambda: seen.append(message()))
        thread.start()
        thread.join()
        assert seen == [""] and "comm is null" in message()
        """,
    )


def header_text():
    return "\n".join(path.read_text() for path in HEADERS)


# The types of C's arguments and results that are no pointers, and Fortran's.
VALUES = {
    "int": "integer(c_int)",
    "int32_t": "integer(c_int32_t)",
    "int64_t": "integer(c_int64_t)",
    "size_t": "integer(c_size_t)",
    "hocket_callback": "type(c_funptr)",
}


def functions_of_c():
    """Maps each function's name to its result and its arguments: pairs of name and type."""
    header = re.sub(r"/\*.*?\*/", "", header_text(), flags=re.DOTALL)
    functions = {}
    for result, name, list_ in re.findall(r"([\w ]+\**) ?\b(hocket_\w+)\(([^)]*)\);", header):
        pairs = re.findall(r"([^,]*?)(\w+)\s*(?:,|$)", "" if list_ == "void" else list_)
        plain = [(argument, re.sub(r"\bconst\b|\s", "", type_)) for type_, argument in pairs]
        functions[name] = re.sub(r"\bconst\b|\s", "", result), plain
    return functions


def functions_of_fortran(text):
    """The same of Fortran, where a type has its attributes."""
    module = re.sub(r"&\s*\n\s*", "", text)
    functions = {}
    head = r"^    (?:([^\n]*) function|subroutine) (hocket_\w+)\(([^)]*)\) bind\(c\)\n"
    for result, name, list_, declared in re.findall(head + "(.*?)^    end ", module, re.M | re.S):
        types = {
            argument.removesuffix("(*)"): type_
            for type_, arguments in re.findall(r"^      (.*?) :: (.*)", declared, re.M)
            for argument in arguments.split(", ")
        }
        arguments = [a.strip() for a in list_.split(",") if a.strip()]
        assert set(arguments) == set(types), name
        functions[name] = result or "void", [(argument, types[argument]) for argument in arguments]
    return functions


def is_the_same(c_type, fortran_type):
    """Whether an argument of the one is passed as that of the other."""
    base, pointer, _ = c_type.partition("*")
    fortran_base, *attributes = re.split(r", (?![^(]*\))", fortran_type)
    if not pointer:
        return fortran_base == VALUES[base] and attributes == ["value"]
    if "value" in attributes:
        return fortran_base == "type(c_ptr)"
    pointed = "type(c_ptr)" if "*" in c_type[len(base) + 1 :] else VALUES.get(base, f"type({base})")
    return fortran_base == ("character(kind=c_char)" if c_type == "char*" else pointed)


def test_fortran_has_what_c_has(tmp_path):
    c, fortran = functions_of_c(), functions_of_fortran(fortran_module(tmp_path).read_text())
    assert set(c) == set(fortran) and len(c) > 140
    for name, (result, arguments) in c.items():
        expected = result if result == "void" else VALUES.get(result, "type(c_ptr)")
        assert fortran[name][0] == expected, name
        assert [a for a, _ in fortran[name][1]] == [a for a, _ in arguments], name
        for (argument, c_type), (_, fortran_type) in zip(arguments, fortran[name][1]):
            assert is_the_same(c_type, fortran_type), (name, argument, c_type, fortran_type)


def test_fortran_has_the_same_numbers(tmp_path):
    header = header_text()
    module = re.sub(r"&\s*", "", fortran_module(tmp_path).read_text())
    for enumerators in re.findall(r"enumerator :: ([^\n]*)", module):
        for value, entry in enumerate(enumerators.split(",")):
            name = entry.split("=")[0].strip()
            assert re.search(rf"\b{name} = {value}\b", header), name


def test_types_are_those_of_the_library():
    """The numbers in c.h equal the C++ library's, in its order."""
    library = ctypes.CDLL(str(LIBRARY)) if LIBRARY.exists() else pytest.skip("no shared library")
    library.hocket_dtype_name.restype = ctypes.c_char_p
    library.hocket_op_name.restype = ctypes.c_char_p
    header = header_text()
    for prefix, name_of in (("dtype", library.hocket_dtype_name), ("op", library.hocket_op_name)):
        number = 0
        while name := name_of(number):
            c_name = {"band": "BIT_AND", "bor": "BIT_OR", "bxor": "BIT_XOR"}.get(
                name.decode(), name.decode().upper()
            )
            assert f"HOCKET_{c_name} = {number}" in header, (prefix, name)
            number += 1
        assert number in (17, 8)
