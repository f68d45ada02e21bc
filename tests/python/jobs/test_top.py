"""`hocket top`: the running jobs, the activity of their ranks, and the ranks that others wait
for.
"""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import hocket_command
import pytest
from helpers import ROOT
from processes import with_package

from hocket._command import find_command

PROGRAM = """
import sys, time
import numpy as np
import hocket

comm = hocket.init()
half = comm.split(color=comm.rank % 2)
for _ in range(40):
    comm.all_reduce(np.ones(1000, "float32"))
half.barrier()
if comm.rank == 2:
    print("ready", flush=True)
    time.sleep(600)
comm.all_gather(np.ones(3))
"""


def job(program, n=4, **env):
    return hocket_command.running(program, n, **env)


def top(*arguments):
    return hocket_command.run("top", *arguments)


def job_of(process, **options):
    """The job that a launcher has started, as `top --json` tells it."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    descendants = {int(each) for each in children}
    for each in children:
        below = Path(f"/proc/{each}/task/{each}/children").read_text().split()
        descendants |= {int(pid) for pid in below}
    found = json.loads(top("--json", "--seconds", "0.2").stdout)["jobs"]
    (mine,) = [each for each in found if descendants & set(each["pids"])]
    return mine


def await_job(process, is_there):
    until = time.monotonic() + 30
    while not is_there(found := job_of(process)):
        assert time.monotonic() < until, found
    return found


def doing(rank):
    return rank["groups"][rank["doing"]]


def test_names_who_is_waited_for():
    with job(PROGRAM) as process:
        found = await_job(process, lambda job: job["blamed"] == [2] and job["size"] == 4
                          and all(r["waiting"] == 1 for r in job["ranks"] if r["rank"] != 2))
        ranks = found["ranks"]
        assert [rank["rank"] for rank in ranks] == [0, 1, 2, 3]
        for rank in ranks:
            assert os.path.exists(f"/proc/{rank['pid']}")
            assert {group["name"] for group in rank["groups"]} >= {"world"}
            if rank["rank"] == 2:
                assert "sleeping" in rank["process"] and rank["blocked_by"] == -1
                continue
            assert rank["blocked_by"] == 2
            assert doing(rank)["inside"] and doing(rank)["missing"] == [2]
            assert doing(rank)["call"].startswith("all_gather #44 float64[3]")
            assert rank["waiting"] == 1 and rank["inside"] == 1
        assert doing(ranks[2])["call"].startswith(("all_reduce #43", "barrier #1"))

        pid = ranks[2]["pid"]
        done = top(pid, "--rank", 2, "--columns", 80, "--seconds", "0.1")
        assert done.returncode == 0, done.stderr
        assert "rank 2 holds up 3 ranks: sleeping" in done.stdout
        assert "waits for 2" in done.stdout
        assert "all_reduce #43 sum float32[1000]" in done.stdout
        assert max(map(len, done.stdout.splitlines())) <= 80
        assert "\x1b" not in done.stdout  # it is no terminal


def test_sees_a_job_whose_ranks_are_all_stopped():
    with job(PROGRAM) as process:
        pids = job_of(process)["pids"]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        found = await_job(process, lambda job: all(r["stands_still"] for r in job["ranks"]))
        assert len(found["ranks"]) == 4
        assert all("stopped by a signal" in rank["process"] for rank in found["ranks"])
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def test_a_job_can_say_no():
    with job(PROGRAM, HOCKET_TOP="0") as process:
        found = job_of(process)
        assert "does not want to be looked at" in found["refusal"] and found["ranks"] == []
        done = top(found["pid"])
        assert done.returncode == 1 and "HOCKET_TOP=0" in done.stderr


def test_says_where_there_is_none():
    # No rank, where this process has been one in other tests.
    with subprocess.Popen(["sleep", "60"]) as other:
        done = top(other.pid)
        other.kill()
    assert done.returncode == 1
    assert "is no rank of a job" in done.stderr
    assert top("--help").stdout.count("hocket top") >= 4


BUSY = """
import numpy as np
import hocket

comm = hocket.init()
print("ready", flush=True)
x = np.ones(1 << 20, "float32")
while True:
    comm.all_reduce(x)
"""


def test_counts_what_a_job_moves():
    with job(BUSY, n=2) as process:
        found = await_job(process, lambda job: all(r["bytes_per_s"] > 0 for r in job["ranks"]))
        for rank in found["ranks"]:
            ratio = rank["bytes_per_s"] / rank["calls_per_s"]
            assert ratio == pytest.approx(4 << 20, rel=0.01)  # so large is each
            assert rank["inside"] > 0


def read_until(fd, text, patience=20):
    """Returns the terminal's output until `text` appears."""
    shown = ""
    until = time.monotonic() + patience
    while text not in shown:
        assert time.monotonic() < until, shown
        if select.select([fd], [], [], 0.2)[0]:
            shown += os.read(fd, 1 << 16).decode(errors="replace")
    return shown


def test_draws_in_place_and_takes_keys():
    with job(PROGRAM) as process:
        pid = job_of(process)["pid"]
        own, other = pty.openpty()
        shown = subprocess.Popen(
            [find_command(), "top", str(pid), "--seconds", "0.2"],
            stdin=other, stdout=other, stderr=other,
            env={**os.environ, "TERM": "xterm"},
        )
        os.close(other)
        try:
            assert "\x1b[?1049h" in read_until(own, "waits for 2")
            read_until(own, "q: quit")
            os.write(own, b"j")
            os.write(own, b"\r")
            read_until(own, "rank 0, its last calls first")
            read_until(own, "all_reduce #43")
            os.write(own, b"w")
            os.write(own, b"q")
            assert "\x1b[?1049l" in read_until(own, "\x1b[?1049l")
            assert shown.wait(20) == 0
        finally:
            shown.kill()
            shown.wait()
            os.close(own)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGQUIT])
def test_a_signal_gives_the_terminal_back(how):
    with job(PROGRAM) as process:
        own, other = pty.openpty()
        before = termios.tcgetattr(other)
        shown = subprocess.Popen(
            [find_command(), "top", str(job_of(process)["pid"]), "--seconds", "0.2"],
            stdin=other, stdout=other, stderr=other, env={**os.environ, "TERM": "xterm"},
        )
        try:
            read_until(own, "q: quit")
            assert termios.tcgetattr(other) != before
            shown.send_signal(how)
            read_until(own, "\x1b[?1049l")
            shown.wait(20)
            assert termios.tcgetattr(other) == before
        finally:
            shown.kill()
            shown.wait()
            os.close(own)
            os.close(other)


def test_a_narrow_terminal_has_every_line_cut():
    with job(PROGRAM) as process:
        own, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 8, 30, 0, 0))
        shown = subprocess.Popen(
            [find_command(), "top", str(job_of(process)["pid"]), "--seconds", "0.2"],
            stdin=other, stdout=other, stderr=other, env={**os.environ, "TERM": "xterm"},
        )
        os.close(other)
        try:
            text = read_until(own, "up down Enter")
            text += read_until(own, "up down Enter")
            plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\n", text)
            lines = [line.strip("\r") for line in plain.split("\n")]
            assert "up down Enter: a rank's calls " in lines
            assert max(map(len, lines)) <= 30, lines
            os.write(own, b"q")
            assert shown.wait(20) == 0
        finally:
            shown.kill()
            shown.wait()
            os.close(own)


def test_rubbish_is_answered_in_a_line():
    for arguments, words in (
        (["--rank", "x"], "not in range"),
        (["--rank", "-1"], "not in range"),
        (["abc"], "not in range"),
        (["--seconds", "x"], "--seconds"),
        (["--seconds", "nan"], "--seconds: expected a number of seconds from 0 to 3600"),
        (["--seconds", "3601"], "--seconds: expected a number of seconds from 0 to 3600"),
    ):
        done = subprocess.run([find_command(), "top", "--once", *arguments],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        assert done.returncode != 0 and words in done.stderr, done.stderr
        assert max(map(len, done.stderr.splitlines())) < 100, done.stderr


def test_names_the_right_rank_and_call():
    tool = ROOT / "tools/faults/standstill.py"
    done = subprocess.run(
        [sys.executable, tool, "--hocket", find_command(), "--trials", "3"],
        env=with_package(),
        capture_output=True, text=True, timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" 3 ") == 12, done.stdout


def test_says_how_one_of_several_jobs_is_chosen():
    with job(PROGRAM) as one, job(PROGRAM) as other:
        pids = {job_of(one)["pid"], job_of(other)["pid"]}
        done = top()
        assert done.returncode == 0
        last = done.stdout.splitlines()[-1]
        assert last.startswith("one of them whole: hocket top PID, such as hocket top ")
        assert all(str(pid) in done.stdout for pid in pids)
        chosen = top(last.split()[-1], "--once")
        assert chosen.returncode == 0 and "rank" in chosen.stdout
