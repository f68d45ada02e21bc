"""Thousands of messages and receives at once: each finds its own, however many others wait."""

import pytest
from processes import run_job

PROGRAM = """
import os, sys
if sys.argv[1] == "hosts":
    os.environ["HOCKET_HOST"] = os.environ["HOCKET_RANK"] + "/"
import numpy as np
import hocket

COUNT, TAGS = 5_000 if sys.argv[1] == "threads" else 20_000, int(sys.argv[2])

def unreceived(comm):
    "Messages wait for their receives, which ask for the last tag first."
    if comm.rank == 0:
        works = [comm.send_async(np.array([i]), 1, tag=i % TAGS) for i in range(COUNT)]
    comm.barrier()
    if comm.rank == 1:
        x = np.zeros(1, np.int64)
        for tag in reversed(range(TAGS)):
            for i in range(tag, COUNT, TAGS):
                comm.recv(x, 0, tag=tag)
                assert x[0] == i, (x, i, tag)
    else:
        for work in works:
            work.wait()

def unsent(comm):
    "Receives wait for their messages, which come with the last tag first."
    if comm.rank == 1:
        arrays = np.full(COUNT, -1)
        works = [comm.recv_async(arrays[i : i + 1], 0, tag=i % TAGS) for i in range(COUNT)]
    comm.barrier()
    if comm.rank == 0:
        for tag in reversed(range(TAGS)):
            for i in range(tag, COUNT, TAGS):
                comm.send(np.array([i]), 1, tag=tag)
    else:
        for work in works:
            work.wait()
        assert (arrays == np.arange(COUNT)).all()

def main(comm):
    unreceived(comm)
    unsent(comm)
    comm.barrier()

if sys.argv[1] == "threads":
    hocket.run_threads(main, 2)
else:
    main(hocket.init())
print("well", flush=True)
"""


@pytest.mark.parametrize("tags", [1, 7, 3000])
@pytest.mark.parametrize("place", ["threads", "processes", "hosts"])
def test_each_finds_its_own(tmp_path, place, tags):
    (tmp_path / "program.py").write_text(PROGRAM)
    ranks = 1 if place == "threads" else 2
    done = run_job(ranks, tmp_path / "program.py", place, tags)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("well") == ranks
