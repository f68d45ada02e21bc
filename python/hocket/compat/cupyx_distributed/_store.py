"""``cupyx.distributed._store``: a small key-value store, and processes whose errors are raised."""

from __future__ import annotations

import multiprocessing
import os
from typing import Any, Optional, Union

import hocket

_DEFAULT_HOST = "127.0.0.1"
_DEFAULT_PORT = 13333

_LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
_SIZE = "cupyx/size"
_ARRIVED = "cupyx/arrived"


class ExceptionAwareProcess(multiprocessing.Process):
    """A process whose `join` raises the exception that its target raised."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._parent_p, self._child_p = multiprocessing.Pipe()

    def run(self) -> None:
        """Run the target in the child, and send its exception to the parent."""
        try:
            super().run()
            self._child_p.send(None)
        except Exception as error:
            self._child_p.send(error)

    def join(self, timeout: Optional[float] = None) -> None:
        """Wait for the child in the parent, and raise the exception that the child has raised."""
        super().join(timeout)
        if self._parent_p.poll():
            error = self._parent_p.recv()
            if error is not None:
                raise error


def _address(host: str, port: int) -> str:
    """Return the store's address. On this host it is a name that only this user can reach, so no
    key is needed.
    """
    if host in _LOCAL_HOSTS:
        return f"unix:cupyx-store-{os.getuid()}-{port}"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _key() -> Optional[str]:
    return os.environ.get("HOCKET_KEY_FILE")


class TCPStore:
    """Serves a store for `world_size` processes, in a thread of this process."""

    def __init__(self, world_size: int) -> None:
        self._world_size = world_size
        self._server: Optional[hocket.StoreServer] = None

    def run(self, host: str = _DEFAULT_HOST, port: int = _DEFAULT_PORT) -> None:
        """Start serving. If the host is another machine's, HOCKET_KEY_FILE must be set."""
        address = _address(host, port)
        if address.startswith("unix:"):
            self._server = hocket.StoreServer(address)
        else:
            self._server = hocket.StoreServer(host, port, key=_key())
        client = hocket.connect_store(address, key=_key())
        client.set(_SIZE, str(self._world_size).encode())
        client.close()

    def stop(self) -> None:
        """Stop serving. It may be called again."""
        if self._server is not None:
            self._server.close()
            self._server = None


class TCPStoreProxy:
    """A client of the store: ``proxy[key]`` reads and sets values of type int or bytes."""

    MAX_NUM_RETRIES = 50
    DELAY_FOR_RETRY = 0.5

    def __init__(self, host: str = _DEFAULT_HOST, port: int = _DEFAULT_PORT) -> None:
        self.host = host
        self.port = port

    def _connect(self) -> hocket.Store:
        # Connects for each call, like CuPy's proxy: a proxy may outlive several stores.
        try:
            return hocket.connect_store(
                _address(self.host, self.port),
                key=_key(),
                timeout=self.MAX_NUM_RETRIES * self.DELAY_FOR_RETRY,
            )
        except hocket.RendezvousError as error:
            raise RuntimeError(f"TCPStore is not available: {error}") from error

    def __getitem__(self, key: str) -> Union[int, bytes]:
        _check_key(key)
        store = self._connect()
        value = store.try_get("cupyx/key/" + key)
        store.close()
        if value is None:
            raise RuntimeError(f"the store has no key {key!r}; it has to be set first")
        return int(value[1:]) if value[:1] == b"i" else value[1:]

    def __setitem__(self, key: str, value: Union[int, bytes]) -> None:
        _check_key(key)
        if type(value) is int:
            content = b"i%d" % value
        elif isinstance(value, (bytes, bytearray)):
            content = b"b" + bytes(value)
        else:
            raise ValueError(f"the value is a {type(value).__name__}, expected int or bytes")
        store = self._connect()
        store.set("cupyx/key/" + key, content)
        store.close()

    def barrier(self) -> None:
        """Wait until as many proxies as the store's `world_size` have made this call."""
        store = self._connect()
        size = int(store.get(_SIZE))
        arrived = store.add(_ARRIVED, 1)
        gate = f"cupyx/gate/{(arrived - 1) // size}"
        if arrived % size == 0:
            store.set(gate, b"")
        else:
            store.get(gate, timeout=float("inf"))
        store.close()


def _check_key(key: str) -> None:
    if not isinstance(key, str):
        raise ValueError(f"the key is a {type(key).__name__}, expected str")
