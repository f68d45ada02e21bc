"""Two jobs of one user at one address: they are kept separate, or the second is refused."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers import free_address

import hocket

# Each rank says whose ranks it met, and why it could not.
RANK = """
import os, sys, hocket
job, rank, address = sys.argv[1:4]
def say(*words): os.write(1, (" ".join(map(str, words)) + "\\n").encode())
try:
    comm = hocket.init(rank=int(rank), size=2, address=address, timeout=12)
except hocket.RendezvousError as error:
    say("refused:", error)
else:
    say("met:", "".join(sorted(comm.all_gather_object(job))))
"""

# The parent of a job's ranks, as a shell or a launcher is.
PARENT = f"""
import subprocess, sys, time
job, first, address, pause = sys.argv[1:5]
ranks = []
for rank in ([0, 1] if first == "0" else [1, 0]):
    ranks.append(subprocess.Popen([sys.executable, "-c", {RANK!r}, job, str(rank), address]))
    time.sleep(float(pause))
for rank in ranks:
    rank.wait()
"""


def environment(**more):
    return {**os.environ, "PYTHONPATH": str(Path(hocket.__file__).parent.parent), **more}


def run_both(address, first, pause, delay, **names):
    jobs = []
    for job in ("a", "b"):
        more = {"HOCKET_JOB": names[job]} if names else {}
        jobs.append(subprocess.Popen(
            [sys.executable, "-c", PARENT, job, first, address, str(pause)],
            env=environment(**more), stdout=subprocess.PIPE, text=True,
        ))
        time.sleep(delay)
    return [job.communicate(timeout=55)[0].splitlines() for job in jobs]


@pytest.mark.parametrize("address", ["unix", "loopback"])
@pytest.mark.parametrize("delay", [0.0, 0.15])
@pytest.mark.parametrize("first", ["0", "1"])
def test_ranks_of_two_parents_do_not_mix(address, delay, first):
    where = free_address() if address == "loopback" else f"unix:hocket-two-{time.monotonic_ns()}"
    for lines in run_both(where, first, 0.05, delay):
        met = [line for line in lines if line.startswith("met:")]
        assert len(lines) == 2 and met in ([], ["met: aa"] * 2, ["met: bb"] * 2), lines
        for line in lines:
            if line.startswith("refused:"):
                # The address is free again when the first job has ended; rank 1 has gone by then.
                words = ("another job", "another process claims it", "rank 1 of 2 had not come")
                assert any(each in line for each in words), line


def test_names_tell_jobs_of_one_parent_apart():
    where = f"unix:hocket-two-{time.monotonic_ns()}"
    for lines in run_both(where, "0", 0.0, 0.0, a="first", b="second"):
        met = [line for line in lines if line.startswith("met:")]
        assert met in ([], ["met: aa"] * 2, ["met: bb"] * 2), lines
