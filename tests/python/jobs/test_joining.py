"""Joining a job: Ctrl-C breaks it, and who is missing is named."""

import os
import re
import signal
import subprocess
import sys
import time

import hocket_command
import numpy as np
import pytest
from processes import free_address, run_job, with_package

import hocket

WATCHDOG = 50

JOINS = """
import sys, hocket
print("joining", flush=True)
try:
    hocket.init(rank=int(sys.argv[1]), size=2, address=sys.argv[2], key=bytes(32), timeout=1000)
except KeyboardInterrupt:
    print("interrupted")
    sys.exit(130)
"""


@pytest.mark.parametrize("rank", [0, 1])  # waits for rank 1; finds no server
@pytest.mark.parametrize("unix", [False, True])
def test_ctrl_c_breaks_joining(rank, unix):
    address = f"unix:hocket-joining-{os.getpid()}-{rank}" if unix else free_address()
    joiner = subprocess.Popen(
        [sys.executable, "-c", JOINS, str(rank), address],
        env=with_package(),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert joiner.stdout.readline() == "joining\n"
        time.sleep(0.2)  # into the wait; before it, Ctrl-C works anyhow
        joiner.send_signal(signal.SIGINT)
        assert joiner.communicate(timeout=WATCHDOG)[0] == "interrupted\n"
        assert joiner.returncode == 130
    finally:
        joiner.kill()
        joiner.wait()


LATE = """
import os, sys, time, hocket
if os.environ["HOCKET_RANK"] == "1":
    print("late", flush=True)
    time.sleep(1000)
print("joining", flush=True)
hocket.init(timeout=1000)
"""


def test_ctrl_c_ends_a_job_that_is_joining():
    job = hocket_command.start("run", "-n", 2, "--no-prefix", "--", sys.executable, "-c", LATE,
                               env=with_package())
    assert sorted(job.stdout.readline() for _ in range(2)) == ["joining\n", "late\n"]
    time.sleep(0.2)
    job.send_signal(signal.SIGINT)
    _, errors = job.communicate(timeout=WATCHDOG)
    assert job.returncode == 130
    assert errors.count("KeyboardInterrupt") == 2, errors  # no process had to be killed


def test_who_is_missing_is_named():
    address = f"unix:hocket-missing-{os.getpid()}"
    with pytest.raises(hocket.RendezvousError) as caught:
        hocket.init(rank=1, size=3, address=f"{address}-x", timeout=0.25)
    assert f"no store could be reached at {address}-x in 0.25 s" in str(caught.value)
    with pytest.raises(hocket.RendezvousError) as caught:
        hocket.init(rank=0, size=3, address=address, timeout=0.25)
    message = str(caught.value)
    assert message.startswith(f"ranks 1, 2 of 3 had not come to {address} within 0.25 s; "), message
    assert not re.search(r"cards|\d{4,} s", message.replace(address, "")), message


WAITS = """
import sys
import hocket
try:
    hocket.init(rank=int(sys.argv[1]), size=3, address=sys.argv[2], key=bytes(32), timeout=12)
except hocket.RendezvousError as error:
    print("error", str(error).split(";")[0], file=sys.stderr)
"""


def test_who_waits_for_long_says_for_whom():
    """Rank 0 of one job waits for the others; rank 1 of another for rank 0, which serves the store."""
    addresses = [free_address(), free_address()]
    waiting = [
        subprocess.Popen(
            [sys.executable, "-c", WAITS, str(rank), address],
            env=with_package(),
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank, address in enumerate(addresses)
    ]
    first, second = (rank.communicate(timeout=50)[1].splitlines() for rank in waiting)
    assert first[0] == f"hocket[0] warning: still waiting for ranks 1, 2 of 3 to come to {addresses[0]}"
    assert first[1].startswith("error ranks 1, 2 of 3 had not come") and len(first) == 2
    assert second[0].startswith(
        f"hocket[1] warning: still waiting for the store at {addresses[1]}: cannot connect"
    )
    assert "Connection refused" in second[0] and "rank 0" in second[0]
    assert second[1].startswith("error no store could be reached") and len(second) == 2


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("HOCKET_DEADLNE", "there is no setting HOCKET_DEADLNE; did you mean HOCKET_DEADLINE?"),
        ("HOCKET_UCX_GPU", "there is no setting HOCKET_UCX_GPU; did you mean HOCKET_UCX_GPUS?"),
        ("HOCKET_EVERYTHING_ELSE", "there is no setting HOCKET_EVERYTHING_ELSE; `hocket doctor --env`"),
    ],
)
def test_a_setting_that_is_none_is_named_once(name, words):
    done = run_job(
        2,
        "-c",
        "import hocket; c = hocket.init(); c.barrier(); hocket.init(rank=0, size=1) if c.rank == 0 else 0",
        env={name: "5", "HOCKET_LOG": ""},
    )
    assert done.returncode == 0 and done.stdout.count(words) == 1, done.stdout
    assert done.stdout.count("warning") == 1


def test_the_world_is_called_as_its_maker_says():
    comm = hocket.init(rank=0, size=1, name="trainers")
    assert comm.name == "trainers" and comm.duplicate().name == "trainers/1"
    with pytest.raises(hocket.InvalidArgument, match="on trainers"):
        comm.broadcast(np.zeros(3), root=7)
    comm.close()
    with pytest.raises(hocket.InvalidArgument, match="name is an int"):
        hocket.init(rank=0, size=1, name=3)
