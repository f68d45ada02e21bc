"""Ctrl-C: KeyboardInterrupt in every wait, on every rank, in any order."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import free_address, start

PROGRAM = Path(__file__).parents[1] / "support" / "interrupted_ranks.py"
RANKS = 3
KINDS = [
    "barrier", "all_reduce", "long all_reduce", "prepared", "wait", "wait with a timeout",
    "synchronize", "behind another", "recv", "recv from any", "recv_async", "send", "exchange",
    "objects", "broadcast_object", "duplicate", "rebuild", "symmetric", "init",
    "init without a store", "store", "pool", "threads", "wait any", "await", "receives",
]


def start_ranks(arguments):
    """Ranks in a process group of their own, as a terminal has them."""
    address = free_address()
    ranks = []
    for rank in range(RANKS):
        leader = ranks[0].pid if ranks else 0
        ranks.append(
            start(PROGRAM, rank, RANKS, address, *arguments,
                  preexec_fn=lambda leader=leader: os.setpgid(0, leader))
        )
    return ranks


@pytest.mark.parametrize("part", range(3))
def test_ctrl_c_is_a_keyboard_interrupt_in_every_wait(part):
    order = random.Random(part)
    kinds = [kind for kind in KINDS for _ in range(2)]
    order.shuffle(kinds)
    ranks = start_ranks(kinds)
    try:
        for kind in kinds:
            for rank in ranks:
                assert rank.stdout.readline() == "ready\n", kind
            time.sleep(order.choice([0.0, 0.002, 0.02, 0.1]))
            os.killpg(ranks[0].pid, signal.SIGINT)
            assert [rank.stdout.readline() for rank in ranks] == ["KeyboardInterrupt\n"] * RANKS, kind
        for rank in ranks:
            assert rank.communicate(timeout=30)[0] == "" and rank.returncode == 0
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()


def test_ctrl_c_that_comes_to_one_rank_after_the_other():
    """As a launcher passes it on: the first one's Aborted is quicker than the next one's signal."""
    kinds = ["barrier", "all_reduce", "wait", "recv", "objects", "symmetric", "wait any", "await", "receives"]
    ranks = start_ranks(kinds)
    try:
        for kind in kinds:
            for rank in ranks:
                assert rank.stdout.readline() == "ready\n", kind
            time.sleep(0.1)
            for rank in ranks:
                rank.send_signal(signal.SIGINT)
                time.sleep(0.01)
            assert [rank.stdout.readline() for rank in ranks] == ["KeyboardInterrupt\n"] * RANKS, kind
        for rank in ranks:
            assert rank.communicate(timeout=30)[0] == "" and rank.returncode == 0
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()


@pytest.mark.parametrize("module", ["hocket._calls.keywords", "numpy"])
def test_ctrl_c_within_the_import(module):
    """The import runs Python code: hocket's own, and that of its imports."""
    program = f"""
import sys
class Interrupted:
    def find_spec(self, name, *rest):
        if name == {module!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupted())
try:
    import hocket
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=50
    )
    assert done.stdout == "interrupted\n" and done.stderr == "", done.stderr
