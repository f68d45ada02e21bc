"""User-defined operators for reductions of arrays in host memory."""

from __future__ import annotations

import ctypes
import functools
import zlib
from typing import Any, Optional

import numpy as np

from ._calls.types import type_in_words
from .errors import InvalidArgument


class Operator:
    """A user-defined operator, for the argument `op` of `all_reduce`, `reduce`, `reduce_scatter`,
    `scan` and `exscan`.

    Ranks are combined in ascending order: ``((x0 op x1) op x2) ...``. So the function need not be
    commutative or associative. If it fails on one rank, the call fails on all ranks, and the
    communicator stays usable.

    All ranks pass the same operator. If the function's name, `commutative`, `dtype` or `rows`
    differ between ranks, the call raises `Mismatch`.

    Parameters
    ----------
    function : callable, Numba cfunc, ctypes function or int
        A function ``f(a, b)`` of two NumPy arrays. It combines them element by element, and returns
        an array of the same shape. Its arguments are blocks of the ranks' arrays, with one axis of
        any length.

        Alternatively a C function or its address: ``void f(void *left, const void *right, size_t
        count, void *context)``. It combines each of the `count` elements at `left` with the element
        at `right`, and stores the result at `left`. Its `context` is NULL.
    commutative : bool
        True if ``f(a, b)`` is ``f(b, a)``. It changes no result, because ranks are combined in
        order.
    dtype : optional
        Type of the arrays that the operator accepts; others are refused. Required for a C function.
    rows : bool
        True if arrays may be split only along their first axis, for example if each entry is a
        matrix. Blocks then have the other axes, too. For a C function, `count` is then a multiple
        of the number of elements in a row.

    Examples
    --------
    >>> import hocket, numpy as np
    >>> longer = hocket.Operator(lambda a, b: np.where(abs(b) > abs(a), b, a))
    >>> def rank(comm):
    ...     return comm.all_reduce(np.array([1.0, -2.0 * comm.rank]), op=longer)
    >>> hocket.run_threads(rank, 3)[0]
    array([ 1., -4.])
    """

    __slots__ = ("_address", "_commutative", "_dtype", "_function", "_identity", "_is_ufunc", "_rows")

    def __init__(
        self, function: Any, commutative: bool = True, *, dtype: Any = None, rows: bool = False
    ) -> None:
        self._function = function
        self._commutative = bool(commutative)
        self._dtype = dtype
        self._rows = bool(rows)
        self._address = _address_of(function)
        #: True for a ufunc: it writes directly into its output array, and keeps no reference to it.
        self._is_ufunc = (
            type(function) is np.ufunc
            and (function.nin, function.nout, function.signature) == (2, 1, None)
        )  # fmt: skip
        if type(function) is np.ufunc and (function.nin, function.nout) != (2, 1):
            raise InvalidArgument(
                f"function is numpy.{function.__name__}, of {_counted(function.nin, 'array')} with "
                f"{_counted(function.nout, 'result')}; give a function of two arrays with one"
            )
        if self._address is None and not callable(function):
            raise InvalidArgument(
                f"function is {type_in_words(function)}; give a function of two arrays, a cfunc of Numba, a "
                "function of ctypes, or the address of one of C"
            )
        if self._address is not None and dtype is None:
            raise InvalidArgument(
                "dtype is missing: a function of C takes its elements for what it was written for; give that"
            )
        #: Equal on all ranks, although the processes have a C function at different addresses.
        self._identity = zlib.crc32(self._in_words().encode("utf-8", "backslashreplace"))

    def _in_words(self) -> str:
        name = "a function of C" if self._address is not None else _name_of(self._function)
        return f"{name} {self._commutative} {self._rows}"  # a call adds the dtype

    @property
    def commutative(self) -> bool:
        """True if the program has declared the operator commutative."""
        return self._commutative

    @property
    def dtype(self) -> Any:
        """Type of the arrays that the operator accepts; None for any type."""
        return self._dtype

    @property
    def rows(self) -> bool:
        """True if arrays are split only along their first axis."""
        return self._rows

    def __repr__(self) -> str:
        """Return a text that names the function."""
        return f"hocket.Operator({self._function!r})"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _name_of(function: Any) -> str:
    """Return a function's name without its module, which is `__main__` on some ranks only."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__qualname__


def _is_code(address: int) -> bool:
    """Return True if the address lies in executable memory, or if that cannot be found out."""
    if address < 1 << 12:
        return False
    try:
        with open("/proc/self/maps", encoding="ascii", errors="replace") as maps:
            for line in maps:
                span, rights = line.split(maxsplit=2)[:2]
                first, last = (int(end, 16) for end in span.split("-"))
                if first <= address < last:
                    return "x" in rights
    except (OSError, ValueError):
        return True
    return False


def _address_of(function: Any) -> Optional[int]:
    """Return the address of a C function; None for a Python function."""
    if isinstance(function, int) and not isinstance(function, bool):
        address: Any = function
    elif isinstance(function, ctypes._CFuncPtr):  # type: ignore[attr-defined]
        address = ctypes.cast(function, ctypes.c_void_p).value
    else:
        address = getattr(function, "address", None)  # a cfunc of Numba
        if not isinstance(address, int):
            return None
    if not address or not 0 < address < 2**64:
        raise InvalidArgument("function is at address NULL or at none; give that of a function of C")
    if not _is_code(int(address)):
        raise InvalidArgument(
            f"function is {address:#x}, an address at which there is no code; give a function of two arrays, or "
            "the address of one of C, as ctypes.cast(function, ctypes.c_void_p).value"
        )
    return int(address)
