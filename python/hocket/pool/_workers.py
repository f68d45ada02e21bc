"""The workers of a pool, and the functions that they run."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Optional

from .._calls.types import Timeout
from .._hocket import Communicator, _Pool
from .._jobs.forked import children_end_here
from ..errors import InvalidArgument
from ._host import HostArrays


@dataclass(frozen=True)
class PoolWorker:
    """A worker as seen by a function that `DevicePool.run` calls."""

    #: The worker's number, from 0.
    index: int
    #: Number of workers.
    size: int
    #: The number of the worker's GPU; None for a worker on the host.
    device: Optional[int]
    #: The communicator of all workers; rank i is worker i. Valid only during the call.
    communicator: Communicator


class Workers:
    """Threads of this process, and calls of functions in them; see `hocket.DevicePool`."""

    def __init__(
        self,
        workers: Optional[int] = None,
        *,
        devices: Optional[Iterable[int]] = None,
        pin: bool = True,
        deadline: Timeout = None,
        engines: Optional[Iterable[str]] = None,
    ) -> None:
        chosen = [int(device) for device in devices] if devices is not None else []
        if (workers is None) == (devices is None):
            raise InvalidArgument("give either workers, their number, or devices, a list of GPUs")
        if devices is not None and not chosen:
            raise InvalidArgument("devices is empty, expected the numbers of GPUs")
        self._pool = _Pool(workers if workers is not None else 0, chosen, pin, deadline, engines)
        self._devices = chosen
        self._finalizer = weakref.finalize(self, self._pool.close)
        if chosen:
            from ._cupy import CupyArrays

            self._arrays: Any = CupyArrays(
                chosen, [self._pool.streams(i) for i in range(len(chosen))]
            )
        else:
            self._arrays = HostArrays()

    # --- Life ---------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Number of workers."""
        return self._pool.size

    @property
    def devices(self) -> tuple[int, ...]:
        """The numbers of the workers' GPUs; empty for workers on the host."""
        return tuple(self._devices)

    @property
    def is_closed(self) -> bool:
        """True if the workers have ended."""
        return self._pool.is_closed

    @property
    def module(self) -> Any:
        """The package of the workers' arrays: numpy or cupy."""
        return self._arrays.module

    @property
    def streams(self) -> list[list[Any]]:
        """The streams of each worker on a GPU: one for loading, one for work. Empty on the host."""
        streams: list[list[Any]] = self._arrays.worker_streams()
        return streams

    def close(self) -> None:
        """End the workers' threads. It may be called again; all other calls are refused afterwards.
        """
        self._pool.close()  # if this refuses, the finalizer closes the pool later
        self._finalizer.detach()

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        kind = f"on GPUs {self._devices}" if self._devices else "of the host"
        return f"<hocket.DevicePool of {self.size} workers {kind}>"

    # --- Work ---------------------------------------------------------------------------------

    def run(
        self,
        func: Callable[..., Any],
        *args: Any,
        workers: Optional[Sequence[int]] = None,
        **kwargs: Any,
    ) -> list[Any]:
        """Call ``func(worker, *args, **kwargs)`` in the threads of all workers at the same time.

        Parameters
        ----------
        func : callable
            Its first argument is a `PoolWorker`. On GPUs, the worker's device and stream are the
            current ones.
        workers : sequence of int, optional
            The workers that run the function, each of them once; by default all.

        Returns
        -------
        list
            Each worker's return value, in the order of `workers`.
        """
        chosen = self._choose(workers)
        results: list[Any] = [None] * len(chosen)
        place = {worker: i for i, worker in enumerate(chosen)}

        def body(index: int, communicator: Communicator) -> None:
            device = self._devices[index] if self._devices else None
            worker = PoolWorker(index, self.size, device, communicator)
            results[place[index]] = func(worker, *args, **kwargs)

        self._map(chosen, body)
        return results

    def map(
        self,
        func: Callable[..., Any],
        *iterables: Iterable[Any],
        workers: Optional[Sequence[int]] = None,
        **kwargs: Any,
    ) -> list[Any]:
        """Call ``func(*items, **kwargs)`` for each tuple of items, distributed over the workers.

        The workers take items in turn: with n workers, item i goes to worker number i modulo n of
        `workers`. Without iterables, each worker makes one call.

        Parameters
        ----------
        func : callable
            On GPUs, the worker's device and stream are the current ones.
        *iterables
            As in Python's `zip`, the shortest iterable determines the number of items.
        workers : sequence of int, optional
            The workers that take items, each of them once; by default all.

        Returns
        -------
        list
            The results, in the order of the items.
        """
        chosen = self._choose(workers)
        items: list[tuple[Any, ...]] = list(zip(*iterables)) if iterables else [()] * len(chosen)
        if items and not chosen:
            raise InvalidArgument(f"workers is empty, so that no worker takes the {len(items)} items")
        results: list[Any] = [None] * len(items)
        place = {worker: i for i, worker in enumerate(chosen)}
        failed: list[int] = []

        def body(index: int, _: Communicator) -> None:
            for i in range(place[index], len(items), len(chosen)):
                if failed:
                    return
                try:
                    results[i] = func(*items[i], **kwargs)
                except BaseException:
                    failed.append(index)
                    raise

        self._map(chosen[: len(items)], body)
        return results

    def _map(self, workers: Sequence[int], body: Callable[[int, Communicator], None]) -> None:
        def in_place(index: int, communicator: Communicator) -> None:
            try:
                with self._arrays.at_worker(index), children_end_here():
                    body(index, communicator)
            except SystemExit as error:  # a worker's exit does not end the caller
                raise RuntimeError(
                    f"worker {index} of {self!r} ended before its function had returned: SystemExit: {error}"
                ) from error
            except BaseException as error:
                if hasattr(error, "add_note"):
                    error.add_note(f"in worker {index} of {self!r}")
                raise

        self._pool.map(workers, in_place, self._arrays.current_streams())

    def _choose(self, workers: Optional[Sequence[int]]) -> list[int]:
        """Return the numbers of the workers that a call is for, after checking them.

        The caller may leave out workers for which it has no items, which then are checked as well.
        """
        if workers is None:
            return list(range(self.size))
        chosen = [int(worker) for worker in workers]
        for i, worker in enumerate(chosen):
            if not 0 <= worker < self.size:
                raise InvalidArgument(f"worker {worker} is not there; there are 0 to {self.size - 1}")
            if worker in chosen[:i]:
                raise InvalidArgument(f"worker {worker} is given twice")
        return chosen

    # --- Arguments ----------------------------------------------------------------------------

    def _require_worker(self, worker: int) -> None:
        if not 0 <= worker < self.size:
            raise InvalidArgument(f"worker is {worker}, expected 0 to {self.size - 1}")

    def _require_one_each(self, arrays: Sequence[Any]) -> None:
        if len(arrays) != self.size:
            raise InvalidArgument(
                f"arrays has {len(arrays)} entries, expected one for each of {self.size} workers"
            )

    @staticmethod
    def _natural(number: Any, name: str) -> int:
        if number < 0:
            raise InvalidArgument(f"{name} is {number}, expected at least 0")
        return int(number)

    @staticmethod
    def _length(x: Any, axis: int) -> int:
        if not hasattr(x, "ndim"):
            raise InvalidArgument(f"a {type(x).__name__} is no array; pass numpy.asarray(x)")
        if not -x.ndim <= axis < x.ndim:
            raise InvalidArgument(f"axis is {axis}, and the array has shape {tuple(x.shape)}")
        return int(x.shape[axis])
