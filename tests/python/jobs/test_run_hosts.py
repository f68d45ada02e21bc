"""Launchers of several hosts, here all on one machine's loopback: numbers of ranks that differ."""

import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

import pytest

import hocket_command

SHOW = """
import os
print("rank", *(os.environ["HOCKET_" + name] for name in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")))
"""


def free_port():
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return tried.getsockname()[1]


class Hosts:
    """`start` starts host number `host`'s launcher."""

    def __init__(self, folder):
        self.folder = folder
        self.key = str(folder / "job.key")
        assert hocket_command.run("key", self.key).returncode == 0
        self.rendezvous = f"127.0.0.1:{free_port()}"
        self.started = []

    def start(self, host, ranks, hosts=2, options=(), program=SHOW):
        launcher = hocket_command.start(
            "run", "-n", str(ranks), "--nnodes", str(hosts), "--node-rank", str(host), "--key",
            self.key, "--rendezvous", self.rendezvous, *options, "--", sys.executable, "-c", program)
        self.started.append(launcher)
        return launcher

    def finish(self, launcher):
        """Its exit status, standard output and error."""
        out, err = launcher.communicate(timeout=hocket_command.WATCHDOG)
        return launcher.returncode, out, err


@pytest.fixture
def hosts(tmp_path):
    made = Hosts(tmp_path)
    yield made
    for launcher in made.started:
        launcher.kill()
        launcher.communicate(timeout=hocket_command.WATCHDOG)


@pytest.mark.parametrize("counts", [(1, 2), (3, 1), (2, 1, 3)])
@pytest.mark.parametrize("last_first", [False, True])
def test_ranks_are_numbered_by_host_and_then_within_it(hosts, counts, last_first):
    order = sorted(range(len(counts)), reverse=last_first)
    launchers = {host: hosts.start(host, counts[host], len(counts)) for host in order}
    for host, count in enumerate(counts):
        code, out, err = hosts.finish(launchers[host])
        assert code == 0, err
        first = sum(counts[:host])
        assert sorted(out.splitlines()) == sorted(
            f"[{first + local}] rank {first + local} {sum(counts)} {local} {count}"
            for local in range(count)), (out, err)


def test_logs_have_the_numbers_of_the_job(hosts, tmp_path):
    launchers = [hosts.start(host, 1 + host, options=["--log-dir", str(tmp_path / "logs")])
                 for host in range(2)]
    assert [hosts.finish(launcher)[0] for launcher in launchers] == [0, 0]
    logs = sorted(path.name for path in pathlib.Path(tmp_path / "logs").glob("*.out"))
    assert logs == [f"rank-{rank}.out" for rank in range(3)]


def test_contradictory_numbers_of_hosts_are_named_everywhere(hosts):
    launchers = [hosts.start(0, 1, hosts=2), hosts.start(1, 2, hosts=3)]
    for launcher in launchers:
        code, out, err = hosts.finish(launcher)
        assert code != 0 and out == ""
        assert "--nnodes 3 on host 1" in err and "--nnodes 2 on host 0" in err, err


def test_a_host_that_is_too_many_is_told(hosts):
    too_many = hosts.start(2, 1, hosts=3)
    launchers = [hosts.start(host, 1, program="import time; time.sleep(1)") for host in range(2)]
    code, out, err = hosts.finish(too_many)
    # The job may be over before it looks.
    assert code != 0 and out == "" and ("--nnodes 2 on host 0" in err or "gone" in err), err
    assert [hosts.finish(launcher)[0] for launcher in launchers] == [0, 0]


def test_two_launchers_of_one_number_are_told_apart(hosts):
    both = [hosts.start(1, 1, hosts=3), hosts.start(1, 2, hosts=3)]
    first = hosts.start(0, 1, hosts=3)
    until = time.monotonic() + hocket_command.WATCHDOG
    while all(launcher.poll() is None for launcher in both):
        assert time.monotonic() < until
        time.sleep(0.02)
    refused, = [launcher for launcher in both if launcher.poll() is not None]
    code, _, err = hosts.finish(refused)
    assert code != 0 and re.search("--node-rank 1: another launcher", err), err
    last = hosts.start(2, 1, hosts=3)
    taken, = [launcher for launcher in both if launcher is not refused]
    assert [hosts.finish(launcher)[0] for launcher in (first, taken, last)] == [0, 0, 0]


def test_waiting_for_other_hosts_ends_when_asked_to(hosts):
    first = hosts.start(0, 2, options=["--verbose"])
    line = first.stderr.readline()
    while line and "the store is on" not in line:
        line = first.stderr.readline()
    first.send_signal(signal.SIGINT)
    code, out, err = hosts.finish(first)
    assert code == 128 + signal.SIGINT and out == "" and "no rank has been started" in err, err


def test_the_time_limit_holds_while_others_have_not_come(hosts):
    code, out, err = hosts.finish(hosts.start(0, 1, options=["--timeout", "0.5"]))
    assert code == 124 and out == "" and "other hosts have not come" in err, err
    with pytest.raises(subprocess.TimeoutExpired):
        hosts.start(1, 1).wait(timeout=1)  # which waits for its own, longer
