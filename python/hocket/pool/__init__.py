"""Pools of workers: many GPUs, or many shares of the processors, in one process."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Optional

from .._calls.refusals import announcing
from .._calls.types import Array, Op
from .._hocket import Communicator
from ..errors import InvalidArgument
from ._host import HostArrays, require_unmasked
from ._workers import PoolWorker, Workers

__all__ = ["DevicePool", "PoolWorker"]


def _part_of(x: Any, axis: int, first: int, last: int) -> tuple[slice, ...]:
    """Return the index of the entries [first, last) along an axis."""
    before: int = axis % x.ndim
    return (slice(None),) * before + (slice(first, last),)


class DevicePool(Workers):
    """Workers that are threads of this process: on the host, or one for each GPU.

    >>> with hocket.DevicePool(4) as pool:
    ...     parts = pool.scatter(x)
    ...     sums = pool.map(numpy.sum, parts)

    Lists of arrays have one entry for each worker. On GPUs, entry i lies on worker i's GPU. On the
    host, a call has ended when it returns. On GPUs, a call is put on streams. It runs after the
    earlier work of the caller's current streams, and before their later work. So no call needs a
    synchronize.

    Only one thread at a time may make calls. An exception in one worker ends the calls between
    workers in which other workers wait. The pool's call raises the exception, with the worker's
    traceback. The pool stays usable.

    Parameters
    ----------
    workers : int, optional
        Number of workers on the host, each with its share of the processors.
    devices : iterable of int, optional
        GPUs by number, one worker for each; several workers may share a GPU. Arrays are CuPy's.
    pin : bool
        True: workers on the host run only on their share of the processors.
    deadline : float or datetime.timedelta, optional
        Seconds that a call between workers may take; by default HOCKET_DEADLINE, or 300.
    engines : iterable of str, optional
        As in `hocket.init`.

    Raises
    ------
    InvalidArgument
        There is less than one worker, or a device is missing.
    DeviceError
        There is no GPU, or its driver refuses.
    """

    def __enter__(self) -> DevicePool:
        return self

    # --- Movement -----------------------------------------------------------------------------

    def broadcast(self, x: Array) -> list[Any]:
        """Give each worker a copy of an array.

        Parameters
        ----------
        x : array
            It may lie in host memory or in any worker's memory.

        Returns
        -------
        list of array
            New arrays, one for each worker.
        """
        return self.distribute([x], [0] * self.size)

    def distribute(self, arrays: Sequence[Array], source: Sequence[int]) -> list[Any]:
        """Give each worker a copy of one of several arrays.

        Parameters
        ----------
        arrays : sequence of array
            They may lie in any memory, and may differ in shape and dtype.
        source : sequence of int
            For each worker, the index of the array that it gets.
        """
        if len(source) != self.size:
            raise InvalidArgument(
                f"source has {len(source)} entries, expected one for each of {self.size} workers"
            )
        for i, which in enumerate(source):
            if not 0 <= which < len(arrays):
                raise InvalidArgument(
                    f"source[{i}] is {which}, and arrays has {len(arrays)}, numbered from 0"
                )
        inputs = [self._arrays.contiguous(x) for x in arrays]
        out = [
            self._arrays.empty(i, inputs[which].shape, inputs[which].dtype)
            for i, which in enumerate(source)
        ]
        self._pool.distribute(inputs, list(source), out, self._arrays.current_streams())
        return out

    def scatter(self, x: Array, axis: int = 0) -> list[Any]:
        """Split an array into one part for each worker. The parts are as equal as possible.

        Returns
        -------
        list of array
            New arrays. If the length is not a multiple of the number of workers, the first are
            longer by one.
        """
        length = self._length(x, axis)
        cuts = [0] + [
            i * (length // self.size) + min(i, length % self.size) for i in range(1, self.size + 1)
        ]
        parts = [x[_part_of(x, axis, a, b)] for a, b in zip(cuts, cuts[1:])]
        out = [self._arrays.empty(i, part.shape, part.dtype) for i, part in enumerate(parts)]
        self.map(self._arrays.assign, out, parts)
        return out

    def gather(
        self, arrays: Sequence[Array], worker: Optional[int] = 0, axis: Optional[int] = 0
    ) -> Any:
        """Concatenate arrays of the workers.

        Parameters
        ----------
        arrays : sequence of array
            One for each worker; they may differ in length along `axis`, and in nothing else.
        worker : int or None
            The worker whose memory holds the result; None for host memory.
        axis : int or None
            The axis along which arrays are concatenated. None stacks them along a new first axis.
        """
        return self._gather(arrays, [worker], axis)[0]

    def all_gather(self, arrays: Sequence[Array], axis: Optional[int] = 0) -> list[Any]:
        """Concatenate the workers' arrays, once for each worker; see `gather`."""
        return self._gather(arrays, range(self.size), axis)

    def _gather(
        self,
        arrays: Sequence[Array],
        targets: Iterable[Optional[int]],
        axis: Optional[int],
    ) -> list[Any]:
        self._require_one_each(arrays)
        if axis is None:
            arrays, axis = [x[None] for x in arrays], 0
        lengths = [self._length(x, axis) for x in arrays]
        shape = list(arrays[0].shape)
        for i, x in enumerate(arrays):
            rest = [n for k, n in enumerate(x.shape) if k != axis % x.ndim]
            if rest != [n for k, n in enumerate(shape) if k != axis % len(shape)]:
                raise InvalidArgument(
                    f"arrays[{i}] has shape {x.shape}, expected {tuple(shape)} but along axis {axis}"
                )
            if x.dtype != arrays[0].dtype:
                raise InvalidArgument(
                    f"arrays[{i}] has dtype {x.dtype}, expected {arrays[0].dtype} as the first"
                )
        shape[axis] = sum(lengths)
        ends = [sum(lengths[: i + 1]) for i in range(self.size)]
        whole = [self._new(target, shape, arrays[0].dtype) for target in targets]

        def copy(i: int) -> None:
            for out in whole:
                part = out[_part_of(out, axis, ends[i] - lengths[i], ends[i])]
                self._arrays.assign(part, arrays[i])

        self.map(copy, range(self.size))
        return whole

    def _new(self, worker: Optional[int], shape: Sequence[int], dtype: Any) -> Any:
        if worker is None:
            return HostArrays().empty(0, shape, dtype)
        self._require_worker(worker)
        return self._arrays.empty(worker, shape, dtype)

    # --- Reductions ---------------------------------------------------------------------------

    def reduce(
        self,
        arrays: Sequence[Array],
        op: Op = "sum",
        worker: int = 0,
        across: Optional[Communicator] = None,
    ) -> Any:
        """Reduce several arrays to one, in the order of the list.

        Parameters
        ----------
        arrays : sequence of array
            They have one shape and dtype. On the host their number is free; on GPUs there is one
            for each worker.
        worker : int
            The worker whose memory holds the result.
        across : Communicator, optional
            A communicator of processes that make the same call. Each process sends one array to the
            others, and gets the result. On GPUs, "avg" needs the same number of workers in each
            process.

        Returns
        -------
        array
            A new array.
        """
        with announcing(across):
            self._require_worker(worker)
            inputs = [self._arrays.contiguous(x) for x in arrays]
            if not inputs:
                raise InvalidArgument("arrays is empty")
            # Between processes with GPUs, each process's first worker reduces. Its result is moved
            # below.
            at = 0 if self._devices and across is not None else worker
            out = self._arrays.empty(at, inputs[0].shape, inputs[0].dtype)
        self._pool.reduce(inputs, out, op, across, self._arrays.current_streams())
        if at == worker:
            return out
        moved = self._arrays.empty(worker, out.shape, out.dtype)
        self.map(self._arrays.assign, [moved], [out], workers=[worker])
        return moved

    def all_reduce(
        self,
        arrays: Sequence[Array],
        op: Op = "sum",
        out: Optional[Sequence[Array]] = None,
        *,
        group: int = 0,
        fixed: bool = False,
        across: Optional[Communicator] = None,
    ) -> list[Any]:
        """Reduce arrays of all workers, in place or into other arrays. Every worker gets the result.

        Each worker reduces one part for all workers. Every array is read and written once, and
        2(n-1)/n of the data moves between workers.

        Parameters
        ----------
        arrays : sequence of array
            One for each worker, contiguous, of one shape and dtype.
        op : str
            "sum", "product", "min", "max", "avg", "band", "bor" or "bxor".
        out : sequence of array, optional
            Receive the results, one for each worker; by default `arrays` receive them.
        group : int
            Size of groups of consecutive workers, each of which reduces separately. The last group
            may be smaller. 0: one group of all workers.
        fixed : bool
            True: on GPUs, sums have the same bits in every run. On the host they always have.
        across : Communicator, optional
            A communicator of processes that make the same call. Each process sends one array to the
            others. `group` must be 0. On GPUs, `fixed` must be False, and "avg" needs the same
            number of workers in each process.

        Returns
        -------
        list of array
            `out`, or `arrays` if `out` is not given.
        """
        with announcing(across):
            inputs = list(arrays)
            results = inputs if out is None else list(out)
        streams = self._arrays.current_streams()
        self._pool.all_reduce(inputs, results, op, group, fixed, across, streams)
        return results

    def mean(
        self,
        arrays: Sequence[Array],
        axis: Optional[int] = 0,
        worker: int = 0,
        across: Optional[Communicator] = None,
    ) -> Any:
        """Return the mean of the workers' arrays along an axis, as if they were concatenated along
        it.

        Every entry has the same weight, even if workers or processes have different numbers of
        entries.

        Parameters
        ----------
        arrays : sequence of array
            Of floating or complex type. They may differ in length along `axis`, and in nothing
            else.
        axis : int or None
            This axis is kept, with length 1. None: the mean of the arrays, element by element.
        worker : int
            The worker whose memory holds the result.
        across : Communicator, optional
            A communicator of processes that make the same call.
        """
        with announcing(across):
            self._require_one_each(arrays)
            for x in arrays:
                require_unmasked(x)
            counts = [1 if axis is None else self._length(x, axis) for x in arrays]
            for i, x in enumerate(arrays):
                if x.dtype.kind not in "fcV":
                    raise InvalidArgument(
                        f"arrays[{i}] is {x.dtype}, expected floating or complex"
                    )
            sums = list(arrays)
            if axis is not None:
                sums = self.map(lambda x: x.sum(axis=axis, keepdims=True, dtype=x.dtype), arrays)
        count = sum(counts)
        if across is not None:
            count = int(across.all_reduce(HostArrays.module.array([count]))[0])
        total = self.reduce(sums, worker=worker, across=across)
        with self._arrays.at_caller(worker):
            total /= count
        return total

    # --- Halos --------------------------------------------------------------------------------

    def exchange_halo(
        self,
        arrays: Sequence[Array],
        seams: Sequence[int],
        overlap: int,
        *,
        mode: Literal["swap", "blend"] = "swap",
        axis: int = -2,
        across: Optional[Communicator] = None,
        outer_seams: tuple[int, int] = (0, 0),
    ) -> list[Any]:
        """Exchange the overlaps of neighbouring workers, in place.

        Workers i and i + 1 share the indices ``[seams[i], seams[i] + overlap)`` along `axis`. On
        GPUs, data that is blended, or sent to another process, passes through host memory, and the
        call waits for it.

        Parameters
        ----------
        arrays : sequence of array
            One for each worker, contiguous, of one shape and dtype.
        seams : sequence of int
            First index of each seam. There is one seam fewer than workers.
        overlap : int
            Width of the seams, at least 1.
        mode : {"swap", "blend"}
            "swap": each of the two workers gets the other's data. "blend": both get the same data,
            a linear transition from the lower worker's data to the higher worker's.
        across : Communicator, optional
            A communicator of processes whose pools hold neighbouring parts, in the order of the
            ranks. One process's last worker and the next process's first worker share a seam, too.
        outer_seams : (int, int)
            First indices of the seams with the previous and with the next process.

        Returns
        -------
        list of array
            The same arrays.
        """
        with announcing(across):
            shape = self._halo_shape(arrays, axis)
            if mode not in ("swap", "blend"):
                raise InvalidArgument(f'mode is {mode!r}, expected "swap" or "blend"')
            places = [self._natural(seam, "a seam") for seam in seams]
            width = self._natural(overlap, "overlap")
            outer = [self._natural(seam, "an outer seam") for seam in outer_seams]
            listed = list(arrays)
        self._pool.exchange_halo(
            listed,
            shape,
            places,
            width,
            mode == "blend",
            across,
            outer,
            self._arrays.current_streams(),
        )
        return listed

    def _halo_shape(self, arrays: Sequence[Any], axis: int) -> list[int]:
        """Return the arrays' shape as (repetitions, rows, elements of a row)."""
        self._require_one_each(arrays)
        shape = tuple(arrays[0].shape)
        length = self._length(arrays[0], axis)
        for i, x in enumerate(arrays):
            if tuple(x.shape) != shape:
                raise InvalidArgument(f"arrays[{i}] has shape {tuple(x.shape)}, expected {shape}")
        at = axis % len(shape)
        return [math.prod(shape[:at]), length, math.prod(shape[at + 1 :])]
