"""``init_method="hocket://"``: the ranks of ``hocket run`` meet at the store of their launcher."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, Optional

from torch._C._distributed_c10d import Store

import hocket


# Keeps the stores alive. PyTorch keeps only the C++ part of a store alive, not the Python part.
_kept: list[HocketStore] = []


class HocketStore(Store):  # type: ignore[misc, unused-ignore]
    """PyTorch's interface to a store of hocket. A prefix is put before its keys.

    A resource that holds a connection. If a key never comes, the wait for it ends with
    TimeoutError.
    """

    def __init__(self, store: hocket.Store, prefix: str) -> None:
        super().__init__()
        self._store = store
        self._prefix = prefix
        self._limit = timedelta(seconds=300)

    def set_timeout(self, timeout: timedelta) -> None:
        """Set the time limit of `get` and `wait`."""
        self._limit = timeout

    @property
    def timeout(self) -> timedelta:
        """The time limit of `get` and `wait`."""
        return self._limit

    def set(self, key: str, value: Any) -> None:
        """Set a key."""
        self._store.set(self._prefix + key, _bytes(value))

    def get(self, key: str) -> bytes:
        """Wait until a key exists, and return its value."""
        return self._store.get(self._prefix + key, self._limit)

    def add(self, key: str, value: int) -> int:
        """Add to a counter, and return the new value."""
        return self._store.add(self._prefix + key, value)

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        """Set a key if it holds the expected value; empty means that it must not exist. Return the
        value that the key holds afterwards.
        """
        expected, desired = _bytes(expected_value), _bytes(desired_value)
        held = self._store.compare_and_set(self._prefix + key, expected or None, desired)
        if held == (expected or None):
            return desired
        return expected if held is None else held

    def check(self, keys: Sequence[str]) -> bool:
        """Return True if all keys exist."""
        return all(self._store.try_get(self._prefix + key) is not None for key in keys)

    def wait(self, keys: Sequence[str], timeout: Optional[timedelta] = None) -> None:
        """Return when all keys exist."""
        for key in keys:
            self._store.get(self._prefix + key, timeout or self._limit)

    def delete_key(self, key: str) -> bool:
        """Delete a key. Return True if it existed."""
        return self._store.erase(self._prefix + key)

    deleteKey = delete_key  # noqa: N815: PyTorch's own code uses this name


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def _launcher_key() -> Any:
    """Return the job's secret, or the name of the file that holds it. Return None if there is none.
    """
    if "HOCKET_KEY_FD" in os.environ:
        return os.pread(int(os.environ["HOCKET_KEY_FD"]), 32, 0)
    return os.environ.get("HOCKET_KEY_FILE")


def _trusts_network() -> bool:
    value = os.environ.get("HOCKET_TRUST_NETWORK", "")
    if value not in ("", "0", "1"):
        raise ValueError(f"HOCKET_TRUST_NETWORK={value} is not one of 0, 1; correct or unset it")
    return value == "1"


_SET_BY_LAUNCHER = ("HOCKET_RANK", "HOCKET_SIZE", "HOCKET_STORE")


def by_launcher(url: str, timeout: timedelta = timedelta(seconds=300), **_: Any) -> Iterator[Any]:
    """Yield a store, this rank, and the number of ranks. torch.distributed calls it for
    ``hocket://``.

    Raises
    ------
    RuntimeError
        This process was not started by ``hocket run``.
    """
    missing = [name for name in _SET_BY_LAUNCHER if name not in os.environ]
    if missing:
        raise RuntimeError(
            f'init_method="hocket://" is for programs under `hocket run`, and {missing[0]} is not '
            "set; under torchrun leave it away, and by hand give a file or a store"
        )
    rank, size = int(os.environ["HOCKET_RANK"]), int(os.environ["HOCKET_SIZE"])
    store = hocket.connect_store(
        os.environ["HOCKET_STORE"],
        key=_launcher_key(),
        job=os.environ.get("HOCKET_JOB", ""),
        timeout=timeout,
        trust_network=_trusts_network(),
    )
    _kept.append(HocketStore(store, f"torch/{len(_kept)}/"))  # the count is equal on all ranks
    yield _kept[-1], rank, size
    raise RuntimeError("init_method=hocket:// meets once for each call")
