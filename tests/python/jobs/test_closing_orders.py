"""Ranks that end in any order and manner, with calls, messages and groups left over: none ends by a
signal, and none hangs.
"""

import pytest
from processes import run_job

RANK = r"""
import os, random, sys, threading, time
seed, hosts = int(sys.argv[1]), int(sys.argv[2])
rank = int(os.environ["HOCKET_RANK"])
if hosts > 1:
    os.environ["HOCKET_HOST"] = f"host{rank % hosts}/"
import numpy as np
import hocket

def leave(comm):
    if draw.random() < 0.3:
        time.sleep(draw.random() * 0.2)
    manner = draw.choice(MANNERS)
    print(rank, "ends by", manner, flush=True)
    if manner == "an exception":
        raise ValueError("no fuel")
    if manner == "os._exit":
        os._exit(0)
    if manner == "sys.exit":
        sys.exit(3)
    if manner == "close":
        comm.close()
    if manner == "close of all":
        for one in [*kept["groups"], comm]:
            one.close()
    if manner == "a block":
        with comm:
            comm.barrier(deadline=0.2)
    if manner == "a wait":
        (kept["works"][-1] if kept["works"] else comm.barrier_async()).wait()
    if manner == "a dropped work":
        kept["works"].clear()

MANNERS = ["return", "an exception", "os._exit", "sys.exit", "close", "close of all", "a block",
           "a wait", "a dropped work"]
same, draw = random.Random(seed), random.Random(seed * 100 + rank)
kept = {"groups": [], "works": [], "arrays": []}
comm = hocket.init(timeout=40, deadline=5)
right = (comm.rank + 1) % comm.size

def array(count):
    kept["arrays"].append(np.ones(count))
    return kept["arrays"][-1]

def waits_in_a_thread():
    own = comm.duplicate()
    kept["groups"].append(own)
    def wait():
        try:
            own.recv(np.zeros(3), tag=99)
        except hocket.Error:
            pass
    threading.Thread(target=wait, daemon=True).start()

LEFT = {
    "a duplicate": lambda: kept["groups"].append(comm.duplicate()),
    "a split": lambda: kept["groups"].append(comm.split(comm.rank % 2)),
    "a short message": lambda: comm.send(array(3), right, tag=1),
    "a long message": lambda: kept["works"].append(comm.send_async(array(300_000), right, tag=2)),
    "a receive": lambda: kept["works"].append(comm.recv_async(array(3), right, tag=77)),
    "a sum": lambda: kept["works"].append(comm.all_reduce_async(array(1000))),
    "a long sum": lambda: kept["works"].append(comm.all_reduce_async(array(400_000))),
    "an object": lambda: kept["works"].append(comm.all_gather_object_async({"x": rank})),
    "symmetric memory": lambda: kept["arrays"].append(comm.symmetric.empty(100, "float64")) if hosts == 1 else None,
    "a thread": waits_in_a_thread,
}
for what in same.sample(sorted(LEFT), same.randrange(1, 6)):
    try:
        LEFT[what]()
    except hocket.Error:  # another rank has ended already
        break
leave(comm)
"""


@pytest.mark.parametrize("hosts", [1, 2])
@pytest.mark.parametrize("seed", range(16))
def test_ranks_end_in_any_order(tmp_path, seed, hosts):
    program = tmp_path / "rank.py"
    program.write_text(RANK)
    done = run_job(2 + seed % 3, program, str(seed), str(hosts), before=["--keep-going"])
    said = done.stdout
    assert said.count("ends by") == 2 + seed % 3, said
    assert 0 <= done.returncode < 128 and "killed by" not in said, said
    assert "Fatal Python error" not in said and "terminate called" not in said, said
