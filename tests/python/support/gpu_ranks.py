"""Ranks that are processes, on the fake driver's GPUs."""

import os
import subprocess
import sys
import uuid
from pathlib import Path

import hocket

PACKAGE = Path(hocket.__file__).parent.parent
FAKE = PACKAGE.parent / "fake_cuda"
HERE = Path(__file__).parent

PRELUDE = """
import os, signal, sys, time
sys.path.insert(0, sys.argv[1])
import numpy as np
import hocket
from fake_gpu import Array, Driver
kept = []  # what a program has for as long as it runs
def start(rank):
    driver = Driver()
    driver.use(rank)
    size, address = int(os.environ["RANKS"]), os.environ["MEET"]
    comm = hocket.init(rank=rank, size=size, address=address, timeout=60)
    first = Array(driver, np.ones(2))
    comm.all_reduce(first)
    driver.synchronize()
    comm.barrier()
    kept.extend([comm, driver, first])
    return comm, driver
"""


def environment(**more):
    return {**os.environ, "PYTHONPATH": str(PACKAGE), "LD_LIBRARY_PATH": str(FAKE),
            "HOCKET_NCCL_LIBRARY": "none", "HOCKET_LOG": "error", "HOCKET_DEADLINE": "40",
            "MEET": f"unix:{uuid.uuid4()}", "RANKS": "2", **more}


def run(program, **more):
    """One process; its exit code and what it said."""
    done = subprocess.run([sys.executable, "-c", PRELUDE + program, str(HERE)],
                          env=environment(**more), capture_output=True, text=True, timeout=100)
    return done.returncode, done.stdout + done.stderr


def run_ranks(program, n=2, **more):
    """`n` processes that know their `rank`; of each its exit code and what it said on stderr."""
    settings = environment(RANKS=str(n), **more)
    started = [
        subprocess.Popen([sys.executable, "-c", f"rank = {rank}\n" + PRELUDE + program, str(HERE)],
                         env=settings, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for rank in range(n)
    ]
    try:
        said = [process.communicate(timeout=100)[1] for process in started]
    finally:
        for process in started:
            process.kill()
    return [(process.returncode, text) for process, text in zip(started, said)]


