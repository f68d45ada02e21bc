"""The key-value store from Python."""

import contextlib
import os
import socket
import threading

import pytest

import hocket


@pytest.fixture
def address():
    return f"unix:hocket-test-store-{os.getpid()}"


def test_values_come_back_as_they_were_set(address):
    server = hocket.StoreServer(address)
    assert server.address == address
    one, other = hocket.connect_store(address), hocket.connect_store(address)
    one.set("a", b"1\x002")
    assert other.get("a") == b"1\x002"
    assert other.try_get("b") is None
    assert [one.add("n", 3), other.add("n", -1)] == [3, 2]
    assert one.erase("a") and not other.erase("a")
    assert one.compare_and_set("c", None, b"1") is None
    assert other.compare_and_set("c", None, b"2") == b"1"
    assert other.compare_and_set("c", b"1", b"3") == b"1"
    assert other.compare_and_set("c", b"1", b"4") == b"3" and one.get("c") == b"3"
    assert one.compare_and_set("d", b"x", b"y") is None and one.try_get("d") is None
    one.set("e", b"1")
    one.set("e\x00f", b"2")  # a different key
    assert [one.get("e"), one.get("e\x00f")] == [b"1", b"2"]
    with pytest.raises(ValueError, match="key holds lone surrogates"):
        one.set("\ud800", b"1")
    one.close()
    one.close()
    with pytest.raises(ValueError, match="the store's client is closed"):
        one.get("a")
    server.close()
    server.close()
    with pytest.raises(ValueError, match="the store's server is closed"):
        server.address


def test_what_a_key_should_hold_is_bytes(address):
    server = hocket.StoreServer(address)
    client = hocket.connect_store(server.address)
    with pytest.raises(TypeError, match="expected: Optional"):
        client.compare_and_set("key", "1", b"2")
    assert client.compare_and_set("key", None, b"1") is None
    assert client.compare_and_set("key", b"1", b"2") == b"1"


def forward(listener, port):
    """Forwards connections to another port of this host, as ssh -L does."""

    def pump(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    with contextlib.suppress(OSError):
        while True:
            client, _ = listener.accept()
            server = socket.create_connection(("127.0.0.1", port))
            for pair in ((client, server), (server, client)):
                threading.Thread(target=pump, args=pair, daemon=True).start()


def test_a_forwarded_port_is_no_wrong_key():
    key = bytes(range(32))
    server = hocket.StoreServer("127.0.0.1", 0, key)
    port = int(server.address.rpartition(":")[2])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=forward, args=(listener, port), daemon=True).start()
        there = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(hocket.RendezvousError, match=f"{there} is forwarded to a store at port {port}"):
            hocket.connect_store(there, key, timeout=20)
        with pytest.raises(hocket.RendezvousError, match="asks for the job's key"):
            hocket.connect_store(there, timeout=20, trust_network=True)
        with pytest.raises(hocket.RendezvousError, match="did not accept this job's key"):
            hocket.connect_store(server.address, bytes(32), timeout=20)
        listener.shutdown(socket.SHUT_RDWR)
    hocket.connect_store(server.address, key, timeout=20).set("a", b"b")
    server.close()


def test_get_waits_and_lets_others_run(address):
    server = hocket.StoreServer(address)
    one, other = hocket.connect_store(address), hocket.connect_store(address)
    setter = threading.Timer(0.1, lambda: other.set("late", b"here"))
    setter.start()
    assert one.get("late", timeout=40) == b"here"
    setter.join()
    with pytest.raises(ConnectionError, match="never"):
        one.get("never", timeout=0.05)
    server.close()


def test_over_tcp_with_a_key():
    server = hocket.StoreServer(key=bytes(range(32)), job="j")
    host, port = server.address.split(":")
    assert host == "127.0.0.1" and int(port) > 0
    client = hocket.connect_store(server.address, key=bytes(range(32)), job="j")
    client.set("k", b"v")
    assert client.try_get("k") == b"v"
    with pytest.raises(hocket.RendezvousError, match="key"):
        hocket.connect_store(server.address, key=bytes(32), job="j", timeout=5)
    with pytest.raises(ValueError, match="32"):
        hocket.StoreServer(key=b"short")


def test_nobody_serves(address):
    with pytest.raises(hocket.RendezvousError, match="no store could be reached"):
        hocket.connect_store(address + "-none", timeout=0.1)
