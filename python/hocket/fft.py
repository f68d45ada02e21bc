"""Fourier transforms of arrays that are distributed over ranks.

>>> from hocket.distribution import Slab
>>> from hocket.fft import FFT
>>> rows = Slab(0).box((256, 256, 256), comm.rank, comm.size)      # what this rank has
>>> columns = Slab(1).box((256, 256, 256), comm.rank, comm.size)   # what it wants
>>> transform = FFT(comm, (256, 256, 256), rows, columns)
>>> spectrum = transform(x)                                        # again and again
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Optional

from ._arrays.kinds import empty_like, gpu_of, name_of
from ._calls.refusals import announcing, collective
from ._calls.types import Array, Timeout, type_in_words
from ._hocket import Communicator, _Fft
from .distribution import Box, _checked_box, _whole, _wholes
from .errors import InvalidArgument

__all__ = ["FFT", "fft", "gpu_of", "ifft", "irfft", "rfft", "spectrum_of"]

Kind = Literal["c2c", "r2c", "c2r"]
Norm = Literal["backward", "ortho", "forward", "none"]
Direction = Literal["forward", "inverse"]

_KINDS = ("c2c", "r2c", "c2r")
_NORMS = ("backward", "ortho", "forward", "none")
_DIRECTIONS = ("forward", "inverse")
_PLANNINGS = ("estimated", "measured")
_REALS = {"float32": "float32", "complex64": "float32", "float64": "float64",
          "complex128": "float64"}
_COMPLEXES = {"float32": "complex64", "float64": "complex128"}


def spectrum_of(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of a real array's spectrum: the last axis has n // 2 + 1 elements."""
    shape = tuple(shape)
    return (*shape[:-1], shape[-1] // 2 + 1)


class FFT:
    """A transform that can be made repeatedly. Creating the object is collective.

    Parameters
    ----------
    comm : Communicator
        Its ranks take part.
    shape : sequence of int
        Shape of the whole array; for "r2c" and "c2r" the shape of the real array.
    source, target : Box
        This rank's part of the array, and the part of the result that this rank wants. The boxes of
        all ranks cover the array, or the result, exactly once. By default the target is the
        source's box. If the transform changes the length of the last axis, each box must then have
        this axis whole.
    kind : {"c2c", "r2c", "c2r"}
        Complex to complex, real to complex, complex to real.
    dtype : dtype
        Type of the real or complex numbers. "float32" and "complex64" mean the same here, and so do
        "float64" and "complex128".
    axes : int, optional
        Number of axes that are transformed, 1 to 3: the last ones. The axes before are batches. By
        default all axes are transformed.
    norm : {"backward", "ortho", "forward", "none"}
        As in NumPy; with "none" nothing is scaled.
    planning : {"measured", "estimated"}
        With "measured" the library tries several algorithms first, and uses the fastest.
    gpu : int, optional
        The GPU whose memory holds the arrays; by default they lie in the host's memory. Either all
        ranks pass a GPU, or no rank does.
    deadline : float or datetime.timedelta, optional
        Time limit of each call, in seconds.

    Raises
    ------
    InvalidArgument
        Raised on all ranks: arguments differ between ranks, or contradict each other.
    """

    @collective
    def __init__(
        self,
        comm: Communicator,
        shape: Sequence[int],
        source: Box,
        target: Optional[Box] = None,
        kind: Kind = "c2c",
        dtype: Any = "complex128",
        axes: Optional[int] = None,
        norm: Norm = "backward",
        planning: Literal["measured", "estimated"] = "measured",
        gpu: Optional[int] = None,
        deadline: Timeout = None,
    ) -> None:
        self._comm = comm
        with announcing(comm):
            for name, value, known in (
                ("kind", kind, _KINDS),
                ("norm", norm, _NORMS),
                ("planning", planning, _PLANNINGS),
            ):
                if value not in known:
                    raise InvalidArgument(f"{name} is {value!r}, expected one of {', '.join(known)}")
            self.shape: tuple[int, ...] = _wholes(shape, "shape")
            if not self.shape or min(self.shape) < 0:
                raise InvalidArgument(f"shape is {self.shape}, expected the whole array's")
            transformed = 0 if axes is None else _whole(axes, "axes")
            if axes is not None and not 1 <= transformed < 1 << 63:
                raise InvalidArgument(f"axes is {axes}, expected how many are transformed, 1 to 3")
            if gpu is not None and not 0 <= _whole(gpu, "gpu") < 1 << 31:
                raise InvalidArgument(f"gpu is {gpu}, expected a GPU's number")
            real = _REALS.get(name_of(dtype))
            if real is None:
                raise InvalidArgument(
                    f"dtype is {name_of(dtype)}, expected one of {', '.join(_REALS)}"
                )
            source = _checked_box("source", source)
            target = _checked_box("target", _target_of(self.shape, source, target, kind))
        self._dtypes = [real if kind == "r2c" else _COMPLEXES[real],
                        real if kind == "c2r" else _COMPLEXES[real]]
        self.kind: str = kind
        self.source: Box = source
        self.target: Box = target
        self._plan = _Fft(
            comm,
            list(self.shape),
            [list(corner) for box in (source, target) for corner in box],
            _KINDS.index(kind),
            real == "float64",
            transformed,
            _NORMS.index(norm),
            planning == "measured",
            gpu,
            deadline,
        )

    @property
    def library(self) -> str:
        """The library of this rank's one-dimensional transforms, such as "FFTW 3.3.10"."""
        return self._plan.library

    @property
    def transposes(self) -> int:
        """Number of times that one transform redistributes the array."""
        return self._plan.transposes

    @collective
    def __call__(
        self,
        x: Array,
        out: Optional[Array] = None,
        direction: Optional[Direction] = None,
        stream: Any = None,
    ) -> Any:
        """Transform an array. Collective.

        Parameters
        ----------
        x : array
            This rank's part, of the shape of `source`, in C order.
        out : array, optional
            Receives the result. It may be `x` itself if both boxes have one shape. By default a new
            array of the package of `x`.
        direction : {"forward", "inverse"}, optional
            By default "forward"; for "c2r" it is "inverse".
        stream : stream or int, optional
            The GPU's stream; by default the current stream of the arrays' package.

        Returns
        -------
        array
            `out`.
        """
        own: Direction = "inverse" if self.kind == "c2r" else "forward"
        with announcing(self._comm):
            if direction is None:
                direction = own
            if direction not in _DIRECTIONS:
                raise InvalidArgument(
                    f"direction is {direction!r}, expected forward or inverse"
                )
            if self.kind != "c2c" and direction != own:
                raise InvalidArgument(f"{self.kind} is {own}, and direction is {direction}")
            if out is None:
                out = empty_like(x, self.target.shape, self._dtypes[1])
            for name, array, box, dtype in (
                ("x", x, self.source, self._dtypes[0]),
                ("out", out, self.target, self._dtypes[1]),
            ):
                _check(name, array, box.shape, dtype)
        self._plan.execute(self._comm, x, out, direction == "inverse", stream)
        return out


def _target_of(shape: tuple[int, ...], source: Box, target: Optional[Box], kind: Kind) -> Box:
    if target is not None or kind == "c2c":
        return source if target is None else target
    here, there = shape[-1], spectrum_of(shape)[-1]
    if kind == "c2r":
        here, there = there, here
    lower, upper = source
    if source.size and (lower[-1], upper[-1]) != (0, here):
        raise InvalidArgument(
            f"target is missing: {source} has not the whole last axis, 0 to {here}, whose length "
            "changes"
        )
    return Box((*lower[:-1], 0), (*upper[:-1], there))


def _check(name: str, array: Any, shape: tuple[int, ...], dtype: str) -> None:
    if not hasattr(array, "shape") or not hasattr(array, "dtype"):
        raise InvalidArgument(f"{name} is {type_in_words(array)}, expected an array")
    if tuple(array.shape) != shape or name_of(array.dtype) != dtype:
        raise InvalidArgument(
            f"{name} has shape {tuple(array.shape)} and dtype {name_of(array.dtype)}, expected "
            f"{shape} and {dtype}"
        )


def _once(
    comm: Communicator,
    x: Array,
    source: Box,
    target: Optional[Box],
    kind: Kind,
    inverse: bool,
    length: Optional[int] = None,
    **options: Any,
) -> Any:
    with announcing(comm):
        box = _checked_box("source", source)
        dtype = name_of(getattr(x, "dtype", None))
        gpu = gpu_of(x)
    said = comm.all_gather_object([list(box.upper), length])
    shape = [max(axis) for axis in zip(*(upper for upper, _ in said))]
    if kind == "c2r":
        length = next((n for _, n in said if n is not None), None)
        shape[-1] = 2 * (shape[-1] - 1) if length is None else length
    plan = FFT(
        comm, shape, box, target, kind, dtype, planning="estimated", gpu=gpu, **options
    )
    return plan(x, direction="inverse" if inverse else "forward")


@collective
def fft(
    comm: Communicator,
    x: Array,
    source: Box,
    target: Optional[Box] = None,
    axes: Optional[int] = None,
    norm: Norm = "backward",
    deadline: Timeout = None,
) -> Any:
    """Transform a complex array once; see `FFT`. The ranks' boxes determine the whole shape."""
    return _once(comm, x, source, target, "c2c", False, axes=axes, norm=norm, deadline=deadline)


@collective
def ifft(
    comm: Communicator,
    x: Array,
    source: Box,
    target: Optional[Box] = None,
    axes: Optional[int] = None,
    norm: Norm = "backward",
    deadline: Timeout = None,
) -> Any:
    """Transform a complex array back once; see `FFT`."""
    return _once(comm, x, source, target, "c2c", True, axes=axes, norm=norm, deadline=deadline)


@collective
def rfft(
    comm: Communicator,
    x: Array,
    source: Box,
    target: Optional[Box] = None,
    axes: Optional[int] = None,
    norm: Norm = "backward",
    deadline: Timeout = None,
) -> Any:
    """Transform a real array once; see `FFT`."""
    return _once(comm, x, source, target, "r2c", False, axes=axes, norm=norm, deadline=deadline)


@collective
def irfft(
    comm: Communicator,
    x: Array,
    source: Box,
    target: Optional[Box] = None,
    n: Optional[int] = None,
    axes: Optional[int] = None,
    norm: Norm = "backward",
    deadline: Timeout = None,
) -> Any:
    """Transform a real array's spectrum back once; see `FFT`.

    `n` is the length of the real array's last axis; by default the even one of both possible
    lengths.
    """
    return _once(comm, x, source, target, "c2r", True, n, axes=axes, norm=norm, deadline=deadline)
