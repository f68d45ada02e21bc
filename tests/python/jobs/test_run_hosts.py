"""Launchers of several hosts, here all on one machine's loopback: numbers of ranks that differ."""

import pathlib
import re
import signal
import sys
import time

import hocket_command
import pytest
from processes import free_port

SHOW = """
import os
print("rank", *(os.environ["HOCKET_" + name] for name in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")))
"""


class Hosts:
    """`start` starts host number `host`'s launcher."""

    def __init__(self, folder):
        self.folder = folder
        self.key = str(folder / "job.key")
        assert hocket_command.run("key", self.key).returncode == 0
        self.rendezvous = f"127.0.0.1:{free_port()}"
        self.started = []

    def start(self, host, ranks, hosts=2, options=(), program=SHOW, key=None):
        launcher = hocket_command.start(
            "run", "-n", str(ranks), "--nnodes", str(hosts), "--node-rank", str(host), "--key",
            key or self.key, "--rendezvous", self.rendezvous, *options, "--", sys.executable, "-c", program)
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


def test_the_time_to_join_is_limited_and_who_has_not_come_is_told(hosts):
    """Host 1 of three is absent; the others say so."""
    launchers = [hosts.start(host, 1, hosts=3, options=["--join-timeout", "3"]) for host in (0, 2)]
    for launcher in launchers:
        code, out, err = hosts.finish(launcher)
        assert code == 124 and out == "", (code, err)
        assert "1 of 3 hosts" in err and "--node-rank 1;" in err, err


def test_an_absent_first_host_is_told(hosts):
    code, out, err = hosts.finish(hosts.start(1, 1, options=["--join-timeout", "0.5"]))
    assert code != 0 and out == "" and hosts.rendezvous in err, err
    assert "host 0's launcher" in err, err


def await_line(stream, wanted):
    line = stream.readline()
    while line and wanted not in line:
        line = stream.readline()
    assert wanted in line, wanted


@pytest.mark.parametrize("early", [0, 1])
def test_the_time_limit_of_a_job_begins_with_its_ranks(hosts, early):
    """The launcher that comes first waits for longer than its job may take."""
    sleeps = "import time; time.sleep(600)"
    limited = hosts.start(early, 1, options=["--timeout", "1"], program=sleeps)
    time.sleep(2)
    assert limited.poll() is None
    other = hosts.start(1 - early, 1, program=sleeps)
    code, _, err = hosts.finish(limited)
    assert code == 124 and "the time limit of 1 s is over; ending 1 ranks" in err, err
    other.kill()


@pytest.mark.parametrize("option", ["--timeout", "--join-timeout"])
@pytest.mark.parametrize("limit", ["0", "-1", "nan", "1e10"])
def test_limits_that_are_none_are_refused(hosts, option, limit):
    code, out, err = hosts.finish(hosts.start(0, 1, options=[option, limit]))
    assert code == 2 and out == "" and option in err, err


def test_a_launcher_that_is_killed_before_the_others_came_is_told(hosts):
    first = hosts.start(0, 1, hosts=3)
    killed = hosts.start(1, 1, hosts=3)
    # Another one with its number is refused as soon as it has come.
    refused = hosts.start(1, 1, hosts=3)
    until = time.monotonic() + hocket_command.WATCHDOG
    while killed.poll() is None and refused.poll() is None:
        assert time.monotonic() < until
        time.sleep(0.02)
    (refused if killed.poll() is not None else killed).kill()
    code, out, err = hosts.finish(first)
    assert code == 124 and out == "" and "launcher of host 1 came, and was killed" in err, err


WAITS = """
import sys, time
print("started", flush=True)
time.sleep(600)
"""
JOINS = """
import hocket
try:
    hocket.init(timeout=300)
except hocket.RendezvousError as error:
    print("told", " ".join(str(error).split()), flush=True)
"""
FAILS = "raise SystemExit(3)"


def test_a_launcher_that_is_killed_before_its_ranks_joined_is_told(hosts):
    first = hosts.start(0, 2, program=JOINS)
    last = hosts.start(1, 2, program=WAITS)
    await_line(last.stdout, "started")
    last.kill()
    code, out, err = hosts.finish(first)
    assert out.count("lost its launcher, which was killed or cut off, before all ranks had joined") == 2, (
        out, err)
    assert "hocket/" not in out and code == 0, (code, out, err)


def test_ranks_that_ended_without_joining_are_told(hosts):
    first = hosts.start(0, 2, program=JOINS)
    last = hosts.start(1, 1, program="pass")
    assert hosts.finish(last)[0] == 0
    _, out, err = hosts.finish(first)
    assert out.count("rank 2 of 3 had a launcher that ended before all ranks had joined") == 2, (out, err)


@pytest.mark.parametrize("end", ["killed", "failed"])
def test_the_end_of_the_first_launcher_ends_ranks_that_have_not_joined(hosts, end):
    first = hosts.start(0, 1, program=WAITS if end == "killed" else FAILS)
    last = hosts.start(1, 2, program=WAITS)
    await_line(last.stdout, "started")
    if end == "killed":
        first.kill()
    code, _, err = hosts.finish(last)
    assert code == 1 and "the first host's launcher" in err, err
    assert "not all ranks had joined; ending 2 ranks" in err and "launcher/" not in err, err
    assert ("ended in failure" in err) == (end == "failed"), err


def test_ranks_that_have_joined_need_the_first_launcher_no_longer(hosts, tmp_path):
    program = f"""
import os, time, hocket
comm = hocket.init(timeout=300)
print("started", flush=True)
while not os.path.exists({str(tmp_path / "go")!r}):
    time.sleep(0.01)
print("still there", flush=True)
"""
    first = hosts.start(0, 1, program=program)
    last = hosts.start(1, 1, program=program)
    for launcher in (first, last):
        await_line(launcher.stdout, "started")
    first.kill()
    first.wait(timeout=hocket_command.WATCHDOG)
    time.sleep(0.5)
    (tmp_path / "go").touch()
    code, out, err = hosts.finish(last)
    assert code == 0 and "still there" in out, (out, err)


def test_a_wrong_key_is_told_on_both_sides(hosts):
    wrong = str(hosts.folder / "wrong.key")
    assert hocket_command.run("key", wrong).returncode == 0
    first = hosts.start(0, 1, options=["--verbose"])
    await_line(first.stderr, "the store is on")
    code, _, err = hosts.finish(hosts.start(1, 1, key=wrong))
    assert code != 0 and "key" in err, err
    await_line(first.stderr, "without this job's key")
    first.send_signal(signal.SIGINT)
    assert hosts.finish(first)[0] == 128 + signal.SIGINT
