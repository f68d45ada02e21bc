"""Ranks that are processes, on the fake driver's GPUs."""

import subprocess
import sys
import uuid
from pathlib import Path

from processes import BUILD, with_package

FAKE = BUILD / "fake_cuda"
HERE = Path(__file__).parent

PRELUDE = """
import os, signal, sys, time
sys.path.insert(0, sys.argv[1])
import numpy as np
import hocket
from fake_gpu import Array, Driver
kept = []  # objects that live until the program ends
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
    fakes = with_package(LD_LIBRARY_PATH=str(FAKE), HOCKET_NCCL_LIBRARY="none", HOCKET_LOG="error")
    return {**fakes, "HOCKET_DEADLINE": "40", "MEET": f"unix:{uuid.uuid4()}", "RANKS": "2", **more}


def run(program, **more):
    """Runs one process; returns its exit code and output."""
    done = subprocess.run([sys.executable, "-c", PRELUDE + program, str(HERE)],
                          env=environment(**more), capture_output=True, text=True, timeout=100)
    return done.returncode, done.stdout + done.stderr


def run_ranks(program, n=2, **more):
    """Runs `n` processes that know their `rank`; returns the exit code and stderr of each."""
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


