"""Rubbish to every socket that a job listens at, while the job joins and runs beside it.

The sockets are not listed here. They are found in the kernel's data about the job's processes.
Today these are the launcher's store and its metrics, the lanes between hosts, the AF_UNIX names at
which shared memory is handed out, the door for newcomers, and the names where workers of a farm meet.
"""

import contextlib
import os
import random
import resource
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import hocket_command
import pytest
from helpers import ROOT
from processes import free_address, needs_ucx, with_package

import hocket

HOCKET = hocket_command.find()
KEY = bytes(range(32))
IDLE = 400  # connections to each socket that say nothing
MEMORY = 64 << 20  # bytes that all this may cost a process

PROGRAM = r"""
import os, sys, time
rank = int(os.environ["HOCKET_RANK"])
os.environ["HOCKET_HOST"] = "first/" if rank < 2 else "second/"
import numpy as np
import hocket
print("started", os.getpid(), flush=True)
if rank == 2:
    time.sleep(1.5)  # the others wait for it, among strangers
comm = hocket.init(timeout=50)
print("joined", flush=True)
rounds = 0
stop = np.zeros(1, "int32")
while stop[0] == 0:
    x = np.arange(5000.0) * (rank + 1)
    comm.all_reduce(x, timeout=50)
    assert (x == np.arange(5000.0) * 6).all()
    stop[0] = os.path.exists(sys.argv[1])
    comm.broadcast(stop, root=0)
    rounds += 1
assert comm.all_gather_object(rank) == [0, 1, 2]
comm.close()
print("right", flush=True)
"""


def children(pid):
    """A process and all below it."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended
            for child in task.read_text().split():
                found += children(int(child))
    return found


def listeners(pids):
    """The addresses at which these processes listen, with the number of the socket."""
    owned = set()
    for pid in pids:
        for fd in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                target = os.readlink(fd)
            except OSError:
                continue
            if target.startswith("socket:["):
                owned.add(target[8:-1])
    found = {}
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and fields[9] in owned:
            host, port = fields[1].split(":")
            found[fields[9]] = (socket.inet_ntoa(struct.pack("=I", int(host, 16))), int(port, 16))
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        fields = line.split(maxsplit=7)
        if len(fields) == 8 and int(fields[3], 16) & 0x10000 and fields[6] in owned:
            found[fields[6]] = "\0" + fields[7][1:]
    return found


def connect(address):
    """Returns a connection, or None if no process listens any more."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.settimeout(2)
    try:
        made.connect(address)
    except OSError:
        made.close()
        return None
    made.settimeout(0.2)
    return made


def valid_hello():
    """Returns the first bytes of a client of the right job, with the right key."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        def join():
            with pytest.raises(hocket.RendezvousError):
                hocket.connect_store(f"127.0.0.1:{server.getsockname()[1]}", key=KEY, timeout=0.5)

        client = threading.Thread(target=join)
        client.start()
        with server.accept()[0] as taken:
            hello = taken.recv(4096)
        client.join()
    assert len(hello) > 20
    return hello


def rubbish(draw, hello):
    """Things to say, one a connection."""
    return [
        draw.randbytes(draw.randrange(1, 3000)),
        hello,
        hello + hello,
        hello + draw.randbytes(200),
        hello[: draw.randrange(1, len(hello))],
        b"\xff\xff\xff\xff" + draw.randbytes(100),  # a length of 4 GiB
        struct.pack("<I", 60_000) + draw.randbytes(70_000),
        struct.pack("<I", 0) * 500,
        b"\x16\x03\x01\x02\x00" + draw.randbytes(512),  # the beginning of TLS
        b"GET / HTTP/1.1\r\nHost: hocket\r\n\r\n",
        b"",
    ]


class Attack:
    """Everything said to one address, over and over. A resource: a thread and its connections."""

    def __init__(self, address, hello, seed):
        self.address, self.hello = address, hello
        self.draw = random.Random(seed)
        self.idle, self.rounds = [], 0
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.stop.is_set():
            for what in rubbish(self.draw, self.hello):
                self.say(what)
            for _ in range(IDLE // 8):
                if len(self.idle) < IDLE:
                    self.idle.append(connect(self.address))
            self.drip()
            self.rounds += 1

    def say(self, what):
        made = connect(self.address)
        if made is None:
            return
        with made:
            try:
                made.sendall(what)
                if self.draw.random() < 0.5:
                    made.recv(4096)
                if self.draw.random() < 0.5:  # closing then resets the connection
                    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            except OSError:
                pass

    def drip(self):
        """One more byte of a valid hello on each connection that is idle."""
        at = self.rounds % len(self.hello)
        for each in self.idle:
            if each is not None:
                try:
                    each.send(self.hello[at:at + 1])
                except OSError:
                    pass
        self.stop.wait(0.02)

    def close(self):
        self.stop.set()
        self.thread.join()
        for each in self.idle:
            if each is not None:
                each.close()


def resident(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    return 0


class Job:
    """Three ranks on two pretended hosts. A resource."""

    def __init__(self, folder, *arguments, **environment):
        self.go = folder / "stop"
        key = folder / "key"
        key.write_text(KEY.hex())
        key.chmod(0o600)
        self.output = folder / "output"
        with open(self.output, "w") as out:
            self.launcher = subprocess.Popen(
                [HOCKET, "run", "-n", "3", "--key", str(key), *arguments, "--", sys.executable,
                 "-c", PROGRAM, str(self.go)],
                env=with_package(**environment),
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)

    def await_output(self, what, times, meanwhile):
        until = time.monotonic() + 45
        while self.output.read_text().count(what) < times:
            assert self.launcher.poll() is None, self.output.read_text()
            assert time.monotonic() < until, self.output.read_text()
            meanwhile()
            time.sleep(0.02)

    def close(self):
        if self.launcher.poll() is None:
            self.launcher.kill()
        self.launcher.wait()


@pytest.fixture
def many_descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard, max(soft, 8192))
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    if wanted < 4096:
        pytest.skip(f"too few descriptors: {wanted}")
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@needs_ucx
def test_rubbish_harms_no_job(tmp_path, many_descriptors):
    hello = valid_hello()
    metrics = free_address()
    job = Job(tmp_path, "--metrics", metrics)
    attacks = {}

    def attack_all():
        for number, address in listeners(children(job.launcher.pid)).items():
            if number not in attacks and not is_ucx(address):
                attacks[number] = Attack(address, hello, seed=len(attacks))

    def is_ucx(address):
        """UCX listens everywhere, at sockets whose users it trusts (docs/security.md)."""
        return isinstance(address, tuple) and address[0] == "0.0.0.0"

    try:
        job.await_output("joined", 3, attack_all)
        attack_all()
        ranks = [int(line.split()[-1]) for line in job.output.read_text().splitlines()
                 if "started" in line]
        before = {pid: resident(pid) for pid in children(job.launcher.pid)}
        rounds = {number: each.rounds for number, each in attacks.items()}
        until = time.monotonic() + 40
        while any(each.rounds < rounds[number] + 3 for number, each in attacks.items()):
            assert time.monotonic() < until
            time.sleep(0.05)
        grown = {pid: resident(pid) - bytes_ for pid, bytes_ in before.items()}
        assert all(bytes_ < MEMORY for bytes_ in grown.values()), grown
        job.go.touch()
        job.launcher.wait(timeout=45)
        text = job.output.read_text()
        assert job.launcher.returncode == 0 and text.count("right") == 3, text
        found = [a.address for a in attacks.values()]
        assert len(ranks) == 3 and len(found) >= 5, found
        assert ("127.0.0.1", int(metrics.split(":")[1])) in found, found
    finally:
        for each in attacks.values():
            each.close()
        job.close()


FARM = r"""
import sys
sys.path.insert(0, sys.argv[1])
import farm_tasks as tasks
import hocket
from hocket.futures import Executor
with Executor(2, retries=1) as pool:
    for _ in range(4):
        try:
            pool.submit(tasks.die).result()
        except hocket.PeerDied:
            pass
        assert list(pool.map(tasks.square, range(50))) == [i * i for i in range(50)]
print("right")
"""


DOOR = r"""
import numpy as np
import hocket
comm = hocket.init(timeout=50)
while comm.size < 3:
    comm = comm.admit(1, patience=0.2)
assert comm.all_reduce(np.ones(1000)).sum() == 3000
if comm.rank == 0:
    print("right", flush=True)
"""


def attack_until_end(*arguments, joins=()):
    """Attack all that a program listens at, while it runs; return its output, and the addresses."""
    environment = with_package()

    def start(command):
        return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    attacks, started = {}, [start(arguments)]
    try:
        while started[0].poll() is None:
            for number, address in listeners(children(started[0].pid)).items():
                if number not in attacks:
                    attacks[number] = Attack(address, b"hello" * 20, seed=len(attacks))
            if joins and len(started) == 1 and any(joins[0] in str(a.address) and a.rounds > 2
                                                   for a in attacks.values()):
                started.append(start(joins[1:]))
            time.sleep(0.005)
        said = "".join(each.communicate(timeout=45)[0] for each in started)
        assert not any(each.returncode for each in started), said
        return said, [each.address for each in attacks.values()]
    finally:
        for each in attacks.values():
            each.close()
        for each in started:
            each.kill()
            each.wait()


def test_rubbish_harms_no_farm(many_descriptors):
    """Each worker that is replaced opens a name, at which it meets the first process alone."""
    support = str(ROOT / "tests" / "python" / "support")
    said, addresses = attack_until_end(sys.executable, "-c", FARM, support)
    assert said == "right\n" and addresses, (said, addresses)


def test_rubbish_keeps_no_newcomer_out(many_descriptors, monkeypatch):
    door = f"rubbish-{os.getpid()}"
    monkeypatch.setenv("HOCKET_DOOR", door)
    program = ["--", sys.executable, "-c", DOOR]
    said, addresses = attack_until_end(HOCKET, "run", "-n", "2", *program,
                                       joins=(door, HOCKET, "run", "--join", door, "-n", "1", *program))
    assert "[0] right" in said and any(door in str(address) for address in addresses), said
