"""Products of matrices that are distributed over ranks: ``alpha * op(a) @ op(b) + beta * c``.

>>> from hocket.distribution import Slab
>>> from hocket.linalg import Matmul
>>> rows = Slab(0)
>>> product = Matmul(comm, (4096, 4096, 4096), rows, rows, rows)
>>> d = product(a, b)                                              # again and again
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Optional, Union

import numpy as np

from ._arrays.kinds import empty_like, gpu_of, name_of
from ._calls.refusals import announcing, collective
from ._calls.types import Array, Timeout, type_in_words
from ._hocket import Communicator, _Matmul
from .distribution import BlockCyclic, BlockNonCyclic, Slab, _whole, _wholes
from .errors import InvalidArgument

__all__ = ["Matmul", "local_shape", "matmul"]

#: Distribution of a matrix. "replicated": every rank has the whole matrix.
Spread = Union[Slab, BlockNonCyclic, BlockCyclic, Literal["replicated"]]
Op = Literal["none", "transpose", "conjugate"]
Form = Literal["cheapest", "gathered", "reduced"]

_OPS = ("none", "transpose", "conjugate")
_FORMS = ("cheapest", "gathered", "reduced")
_DTYPES = ("float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64", "complex64",
           "complex128")


def local_shape(spread: Spread, whole: Sequence[int], rank: int, size: int) -> tuple[int, ...]:
    """Return the shape of the part that a rank of `size` has of a matrix of shape `whole`."""
    whole = _wholes(whole, "whole")
    if len(whole) != 2 or min(whole) < 0:
        raise InvalidArgument(f"whole is {whole}, expected the two extents of a matrix")
    if isinstance(spread, str):
        _words_of("spread", spread, whole, size)
        return whole
    if isinstance(spread, Slab):
        return spread.box(whole, rank, size).shape
    if isinstance(spread, BlockNonCyclic):
        spread = spread.bound(whole)
    _words_of("spread", spread, whole, size)
    return spread.shape(whole, rank)


class Matmul:
    """A product that can be made repeatedly. Creating the object is collective.

    Parameters
    ----------
    comm : Communicator
        Its ranks take part.
    size : (int, int, int)
        m, n and k: ``op(a)`` is m x k, ``op(b)`` k x n, ``c`` and the result m x n.
    a, b, d : Slab, BlockNonCyclic, BlockCyclic or "replicated"
        Distributions of ``a``, ``b`` and the result, as they are stored, before `op`. ``Slab(0)``
        distributes rows, ``Slab(1)`` columns. Grids have two axes. ``c`` has the result's
        distribution.
    op_a, op_b : {"none", "transpose", "conjugate"}
        Operation on ``a`` and ``b`` before the product; "conjugate" stands for conjugate transpose.
    dtype : dtype
        Type of ``a`` and ``b``: float8_e4m3fn, float8_e5m2, float16, bfloat16, float32, float64,
        complex64 or complex128. Products of 8 and 16 bits are summed as float32.
    out_dtype : dtype, optional
        Type of ``c`` and the result; by default `dtype`. For float16 and bfloat16 it may be
        float32, and for 8-bit types any real type except float64. Results too large for an 8-bit
        type become its largest number.
    order : {"C", "F"} or three of these letters
        The order of elements in memory; three letters give it for ``a``, ``b`` and the result each.
    form : {"cheapest", "gathered", "reduced"}
        The data that ranks exchange. "gathered": each rank gets the parts of ``a`` and ``b`` that
        its part of the result needs. "reduced": each rank multiplies its part along the extent k,
        and the products are reduced. The reduction is an all-reduce if `d` is "replicated", else a
        reduce-scatter. "cheapest": hocket chooses.
    gpu : int, optional
        The GPU whose memory holds the arrays; by default they lie in the host's memory. Either all
        ranks pass a GPU, or no rank does.
    deadline : float or datetime.timedelta, optional
        Time limit of each call, in seconds.
    dtype_b : dtype, optional
        Type of ``b``, if ``a`` and ``b`` have different 8-bit types; by default `dtype`.

    Raises
    ------
    InvalidArgument
        Raised on all ranks: arguments differ between ranks, or contradict each other.
    """

    @collective
    def __init__(
        self,
        comm: Communicator,
        size: Sequence[int],
        a: Spread,
        b: Spread,
        d: Spread,
        op_a: Op = "none",
        op_b: Op = "none",
        dtype: Any = "float64",
        out_dtype: Optional[Any] = None,
        order: str = "C",
        form: Form = "cheapest",
        gpu: Optional[int] = None,
        deadline: Timeout = None,
        dtype_b: Optional[Any] = None,
    ) -> None:
        self._comm = comm
        with announcing(comm):
            for name, value, known in (("op_a", op_a, _OPS), ("op_b", op_b, _OPS),
                                       ("form", form, _FORMS)):
                if value not in known:
                    raise InvalidArgument(f"{name} is {value!r}, expected one of {', '.join(known)}")
            self.size: tuple[int, ...] = _wholes(size, "size")
            if len(self.size) != 3 or min(self.size) < 0:
                raise InvalidArgument(f"size is {self.size}, expected m, n and k")
            if not isinstance(order, str) or len(order) not in (1, 3) or not set(order) <= set("CF"):
                raise InvalidArgument(f'order is {order!r}, expected "C", "F" or three such letters')
            if gpu is not None and not 0 <= _whole(gpu, "gpu") < 1 << 31:
                raise InvalidArgument(f"gpu is {gpu}, expected a GPU's number")
            self.dtype: str = name_of(dtype)
            self.out_dtype: str = self.dtype if out_dtype is None else name_of(out_dtype)
            self.dtype_b: str = self.dtype if dtype_b is None else name_of(dtype_b)
            for name in (self.dtype, self.dtype_b, self.out_dtype):
                if name not in _DTYPES:
                    raise InvalidArgument(f"dtype is {name}, expected one of {', '.join(_DTYPES)}")
            self._orders = order * 3 if len(order) == 1 else order
            m, n, k = self.size
            wholes = [(m, k) if op_a == "none" else (k, m), (k, n) if op_b == "none" else (n, k),
                      (m, n)]
            spreads = [_words_of(name, spread, whole, comm.size)
                       for name, spread, whole in zip("abd", (a, b, d), wholes)]
            #: Shapes of this rank's parts of ``a``, ``b`` and the result.
            self.shapes: list[tuple[int, ...]] = [
                local_shape(spread, whole, comm.rank, comm.size)
                for spread, whole in zip((a, b, d), wholes)
            ]
        self._plan = _Matmul(
            comm,
            list(self.size),
            spreads,
            [_OPS.index(op_a), _OPS.index(op_b), 0],
            [letter == "F" for letter in self._orders],
            self.dtype.removesuffix("fn"),
            self.dtype_b.removesuffix("fn"),
            self.out_dtype.removesuffix("fn"),
            _FORMS.index(form),
            gpu,
            deadline,
        )

    @property
    def library(self) -> str:
        """The library of this rank's local products, such as "OpenBLAS 0.3.29" or "cuBLAS 13.1.0".
        """
        return self._plan.library

    @property
    def form(self) -> str:
        """The data that ranks exchange: "gathered" or "reduced"."""
        return _FORMS[self._plan.form]

    @collective
    def __call__(
        self,
        a: Array,
        b: Array,
        c: Optional[Array] = None,
        out: Optional[Array] = None,
        alpha: complex = 1,
        beta: Optional[complex] = None,
        stream: Any = None,
    ) -> Any:
        """Multiply. Collective.

        Parameters
        ----------
        a, b : array
            This rank's parts, of ``shapes[0]`` and ``shapes[1]``, contiguous.
        c : array, optional
            The summand, of the result's shape and dtype. If the result is replicated, all ranks
            pass the same `c`.
        out : array, optional
            Receives the result; it may be `c` itself. By default a new array of the package of `a`.
        alpha, beta : number
            The same on all ranks; by default 1. `beta` scales `c`, and is refused without `c`.
        stream : stream or int, optional
            The GPU's stream; by default the current stream of the arrays' package.

        Returns
        -------
        array
            `out`.
        """
        with announcing(self._comm):
            scaled = 1 if beta is None else beta
            for name, scale in (("alpha", alpha), ("beta", scaled)):
                try:
                    complex(scale)
                except (TypeError, ValueError):
                    raise InvalidArgument(f"{name} is {scale!r}, expected a number") from None
            if c is None and beta is not None and complex(beta) != 0:
                raise InvalidArgument(f"beta is {beta!r}, and there is no c to scale; give c")
            if out is None:
                out = empty_like(a, self.shapes[2], self.out_dtype, self._orders[2])
            places = [("a", a, 0), ("b", b, 1), ("out", out, 2)]
            places += [] if c is None else [("c", c, 2)]
            dtypes = self.dtype, self.dtype_b, self.out_dtype
            given = {name: _checked(name, array, self.shapes[i], dtypes[i], self._orders[i])
                     for name, array, i in places}
        self._plan.execute(self._comm, given["a"], given["b"], given.get("c"), given["out"],
                           complex(alpha), complex(scaled), stream)
        return out


@collective
def matmul(
    comm: Communicator,
    a: Array,
    b: Array,
    spread_a: Spread = Slab(0),
    spread_b: Spread = Slab(0),
    spread_out: Spread = Slab(0),
    c: Optional[Array] = None,
    op_a: Op = "none",
    op_b: Op = "none",
    alpha: complex = 1,
    beta: Optional[complex] = None,
    out_dtype: Optional[Any] = None,
    order: str = "C",
    form: Form = "cheapest",
    deadline: Timeout = None,
) -> Any:
    """Multiply once; see `Matmul`. The ranks' parts determine the whole matrices.

    >>> d = matmul(comm, a, b)                                    # all by rows
    >>> gram = matmul(comm, x, x, op_a="conjugate", spread_out="replicated")
    """
    with announcing(comm):
        shapes = []
        for name, array in (("a", a), ("b", b)):
            if not hasattr(array, "shape") or len(array.shape) != 2:
                raise InvalidArgument(f"{name} is no matrix: it has not two axes")
            shapes.append(tuple(map(int, array.shape)))
        dtype, dtype_b = (name_of(getattr(x, "dtype", None)) for x in (a, b))
        # Other types pass here. The constructor of Matmul refuses them later.
        dtype_b = dtype_b if {dtype, dtype_b} <= set(_DTYPES[:2]) else dtype
        spreads = [_words_of(name, spread, (0, 0), comm.size)
                   for name, spread in (("a", spread_a), ("b", spread_b))]
    said = comm.all_gather_object(shapes)
    wholes = [_whole_of([each[i] for each in said], spread) for i, spread in enumerate(spreads)]
    (m, k), (inner, n) = [whole if op == "none" else whole[::-1]
                          for whole, op in zip(wholes, (op_a, op_b))]
    with announcing(comm):
        if k != inner:
            raise InvalidArgument(f"op(a) is {m} x {k}, and op(b) {inner} x {n}")
    plan = Matmul(comm, (m, n, k), spread_a, spread_b, spread_out, op_a, op_b, dtype, out_dtype, order,
                  form, gpu_of(a), deadline, dtype_b)
    return plan(a, b, c, None, alpha, beta)


def _whole_of(shapes: Sequence[Sequence[int]], words: Sequence[int]) -> tuple[int, int]:
    """Return the whole matrix's shape, which follows from the shapes of the ranks' parts."""
    rows, columns = shapes[0]
    if len(words) == 1:
        total = sum(shape[words[0]] for shape in shapes)
        return (total, columns) if words[0] == 0 else (rows, total)
    if not words:
        return rows, columns
    ranks = np.reshape(words[6:], words[:2])
    return (sum(shapes[r][0] for r in ranks[:, 0]), sum(shapes[r][1] for r in ranks[0]))


def _words_of(name: str, spread: Any, whole: tuple[int, ...], size: int) -> list[int]:
    """Return the distribution in the encoding that the C++ side reads."""
    if isinstance(spread, str) and spread == "replicated":
        return []
    if isinstance(spread, Slab):
        if spread.axis not in (0, 1):
            raise InvalidArgument(f"the slabs' axis of {name} is {spread.axis}, expected 0 or 1")
        return [spread.axis]
    if not isinstance(spread, (BlockCyclic, BlockNonCyclic)):
        raise InvalidArgument(
            f'{name} is spread as {spread!r}, expected a Slab, BlockNonCyclic, BlockCyclic or '
            '"replicated"'
        )
    if len(spread.grid.shape) != 2 or spread.grid.size != size:
        raise InvalidArgument(
            f"the grid of {name} has shape {spread.grid.shape}, expected two axes and {size} places"
        )
    blocks = spread.bound(whole) if isinstance(spread, BlockNonCyclic) else spread
    return [*spread.grid.shape, *blocks.block, *blocks.first, *map(int, spread.grid.ranks.flat)]


def _checked(name: str, array: Any, shape: tuple[int, ...], dtype: str, order: str) -> Any:
    """Return the array as the C++ side reads it: in C order, transposed if `order` is "F"."""
    if not hasattr(array, "shape") or not hasattr(array, "dtype"):
        raise InvalidArgument(f"{name} is {type_in_words(array)}, expected an array")
    if tuple(array.shape) != tuple(shape) or name_of(array.dtype) != dtype:
        raise InvalidArgument(
            f"{name} has shape {tuple(array.shape)} and dtype {name_of(array.dtype)}, expected "
            f"{tuple(shape)} and {dtype}"
        )
    turned = array.T if order == "F" else array
    if isinstance(turned, np.ndarray) and not turned.flags.c_contiguous:
        raise InvalidArgument(f'{name} does not lie in order "{order}" without gaps')
    return turned
