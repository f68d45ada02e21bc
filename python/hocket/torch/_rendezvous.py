"""``init_method="hocket://"``: the ranks of ``hocket run`` meet by the store of their launcher."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, Optional

from torch._C._distributed_c10d import Store

import hocket


# Keeps the stores alive: PyTorch keeps its own part of a store alive, but not the Python part.
_kept: list[HocketStore] = []


class HocketStore(Store):  # type: ignore[misc, unused-ignore]
    """PyTorch's interface to a store of hocket, under a prefix of its keys.

    A resource over a connection. Waiting for a key that never comes ends with TimeoutError.
    """

    def __init__(self, store: hocket.Store, prefix: str) -> None:
        super().__init__()
        self._store = store
        self._prefix = prefix
        self._limit = timedelta(seconds=300)

    def set_timeout(self, timeout: timedelta) -> None:
        """Set the limit of `get` and `wait`."""
        self._limit = timeout

    @property
    def timeout(self) -> timedelta:
        """The limit of `get` and `wait`."""
        return self._limit

    def set(self, key: str, value: Any) -> None:
        """Set a key."""
        self._store.set(self._prefix + key, _bytes(value))

    def get(self, key: str) -> bytes:
        """The value, once it is there."""
        return self._store.get(self._prefix + key, self._limit)

    def add(self, key: str, value: int) -> int:
        """Add to a counter; return the new value."""
        return self._store.add(self._prefix + key, value)

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        """Set a key if it holds the expected value (empty: if it is absent). Returns the value
        it now holds.
        """
        expected, desired = _bytes(expected_value), _bytes(desired_value)
        held = self._store.compare_and_set(self._prefix + key, expected or None, desired)
        if held == (expected or None):
            return desired
        return expected if held is None else held

    def check(self, keys: Sequence[str]) -> bool:
        """True if all keys are there."""
        return all(self._store.try_get(self._prefix + key) is not None for key in keys)

    def wait(self, keys: Sequence[str], timeout: Optional[timedelta] = None) -> None:
        """Returns when all are there."""
        for key in keys:
            self._store.get(self._prefix + key, timeout or self._limit)

    def delete_key(self, key: str) -> bool:
        """Delete a key; True if it was there."""
        return self._store.erase(self._prefix + key)

    deleteKey = delete_key  # noqa: N815: what PyTorch's own code calls


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def _launcher_key() -> Any:
    """The job's secret, or the name of its file; None if there is none."""
    if "HOCKET_KEY_FD" in os.environ:
        return os.pread(int(os.environ["HOCKET_KEY_FD"]), 32, 0)
    return os.environ.get("HOCKET_KEY_FILE")


def by_launcher(url: str, timeout: timedelta = timedelta(seconds=300), **_: Any) -> Iterator[Any]:
    """A store, this rank, and the number of ranks; torch.distributed calls it for ``hocket://``.

    Raises
    ------
    RuntimeError
        This process was not started by ``hocket run``.
    """
    if "HOCKET_RANK" not in os.environ:
        raise RuntimeError(
            'init_method="hocket://" is for programs under `hocket run`; under torchrun leave it '
            "away, and by hand give a file or a store"
        )
    rank, size = int(os.environ["HOCKET_RANK"]), int(os.environ["HOCKET_SIZE"])
    store = hocket.connect_store(
        os.environ["HOCKET_STORE"],
        key=_launcher_key(),
        job=os.environ.get("HOCKET_JOB", ""),
        timeout=timeout,
        trust_network=os.environ.get("HOCKET_TRUST_NETWORK") == "1",
    )
    _kept.append(HocketStore(store, f"torch/{len(_kept)}/"))  # all ranks count alike
    yield _kept[-1], rank, size
    raise RuntimeError("init_method=hocket:// meets once for each call")
