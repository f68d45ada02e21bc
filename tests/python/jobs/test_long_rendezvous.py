"""Waits to meet: what can never come ends at once, and what may come is named after ten seconds."""

import shutil
import socket
import subprocess
import sys
import threading
import time

import hocket_command
import pytest
from processes import free_address, with_package

KEY = bytes(32)
WATCHDOG = 50

JOINS = """
import sys, hocket
hocket.init(rank=int(sys.argv[1]), size=2, address=sys.argv[2], key=bytes(32), timeout=float(sys.argv[3]))
"""


def join(rank, address, timeout):
    return subprocess.Popen([sys.executable, "-c", JOINS, str(rank), address, str(timeout)],
                            env=with_package(), stderr=subprocess.PIPE, text=True)


def takes_and_is_silent(server):
    def serve():
        kept = []
        while True:
            try:
                kept.append(server.accept()[0])
            except OSError:
                return

    threading.Thread(target=serve, daemon=True).start()


def takes_nothing(server):
    del server


@pytest.mark.parametrize("holds", [takes_and_is_silent, takes_nothing])
def test_a_port_that_a_silent_program_holds(holds):
    """Rank 0, which should serve there, gives up. Rank 1 says that it waits for the store."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        holds(server)
        address = f"127.0.0.1:{server.getsockname()[1]}"
        ranks = [join(0, address, 300), join(1, address, 14)]
        errors = [rank.communicate(timeout=WATCHDOG)[1] for rank in ranks]
    assert ranks[0].returncode == 1 and ranks[1].returncode == 1
    assert "another program, which holds the port" in errors[0], errors
    assert "still waiting for the store" in errors[1], errors
    assert "another program, which holds the port" in errors[1], errors


@pytest.mark.parametrize("node", [0, 1])
def test_a_launcher_whose_other_host_is_absent_says_so(tmp_path, node):
    (tmp_path / "key").write_text("ab" * 32)
    (tmp_path / "key").chmod(0o600)
    job = hocket_command.start(
        "run", "-n", 1, "--nnodes", 2, "--node-rank", node, "--rendezvous", free_address(), "--key",
        str(tmp_path / "key"), "--join-timeout", 13, "--", "true", env=with_package(),
    )
    _, errors = job.communicate(timeout=WATCHDOG)
    assert job.returncode != 0
    assert "still waiting" in errors, errors
    if node == 0:
        assert "--node-rank 1" in errors, errors
    else:
        assert "this host alone" in errors, errors


NO_NETWORK = ["unshare", "--net", "--map-root-user", "--user"]


def has_namespaces():
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*NO_NETWORK, "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not has_namespaces(), reason="no namespaces of the network here")
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a_job_of_one_host_needs_no_network(ranks):
    program = "import hocket; c = hocket.init(timeout=30); c.barrier(); print('all are there')"
    done = subprocess.run(
        [*NO_NETWORK, hocket_command.find(), "run", "-n", str(ranks), "--", sys.executable,
         "-c", program],
        env=with_package(), capture_output=True, text=True, timeout=WATCHDOG, check=False,
    )
    assert done.returncode == 0 and done.stdout.count("all are there") == ranks, done.stderr


@pytest.mark.skipif(not has_namespaces(), reason="no namespaces of the network here")
@pytest.mark.parametrize("rank", [0, 1])
def test_loopback_that_is_down_ends_the_wait(rank):
    began = time.monotonic()
    done = subprocess.run(
        [*NO_NETWORK, sys.executable, "-c", JOINS, str(rank), "127.0.0.1:4711", "300"],
        env=with_package(), capture_output=True, text=True, timeout=WATCHDOG, check=False,
    )
    assert done.returncode == 1 and "loopback interface is down" in done.stderr, done.stderr
    assert time.monotonic() - began < WATCHDOG


def test_newcomers_say_for_what_they_wait(tmp_path):
    """They say it after ten seconds, and again, whether or not anybody answers at the door."""
    served = free_address()
    key = str(tmp_path / "key")
    hocket_command.run("key", key)
    name = f"none-{time.monotonic_ns()}"
    nobody = "nobody answers there"
    says = {name: nobody, f"unix:hocket-{name}": nobody, free_address(): nobody,
            served: "its members have not called admit"}
    door = subprocess.Popen(
        [hocket_command.find(), "store", "--address", served, "--key", key, "--job", "hocket door"],
        stdout=subprocess.DEVNULL)
    try:
        newcomers = [
            subprocess.Popen(
                [sys.executable, "-c", f"import hocket; hocket.init(join={address!r}, timeout=23)"],
                env={**with_package(), "HOCKET_KEY_FILE": key}, stderr=subprocess.PIPE, text=True)
            for address in says
        ]
        for newcomer, (address, word) in zip(newcomers, says.items()):
            errors = newcomer.communicate(timeout=WATCHDOG)[1]
            warnings = [line for line in errors.splitlines() if "still waiting after" in line]
            assert newcomer.returncode == 1 and len(warnings) == 2, errors
            assert all(word in line and address in line for line in warnings), warnings
    finally:
        door.terminate()
        door.wait()
