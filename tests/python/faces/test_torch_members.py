"""Groups of torch.distributed whose members change. Needs PyTorch; some of it PyTorch 2.15."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import hocket

dist = pytest.importorskip("torch.distributed", reason="PyTorch is not installed")

PROGRAM = Path(__file__).parent.parent / "support" / "torch_members.py"
movable = pytest.mark.skipif(
    not hasattr(dist, "_reconfigure"), reason="this PyTorch has no groups whose members change"
)


def run(name, n, folder, killed=()):
    """Run the program on `n` ranks, of which some are killed. All others end well."""
    environment = {
        **os.environ, "PYTHONPATH": str(Path(hocket.__file__).parent.parent), "OMP_NUM_THREADS": "1"
    }
    ranks = [
        subprocess.Popen(
            [sys.executable, PROGRAM, name, str(rank), str(n), folder / "store"],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(n)
    ]
    try:
        outputs = [rank.communicate(timeout=120) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    for rank, (process, (out, err)) in enumerate(zip(ranks, outputs)):
        assert process.returncode == (-9 if rank in killed else 0), f"rank {rank}:\n{err[-3000:]}"
        assert rank in killed or out == "done\n"


@movable
def test_members_come_and_go(tmp_path):
    run("grow_and_shrink", 4, tmp_path, killed=[1])


@movable
def test_a_member_that_does_not_come_is_named_and_the_others_try_again(tmp_path):
    run("one_does_not_come", 3, tmp_path, killed=[1])


@movable
def test_calls_of_the_group_before_end(tmp_path):
    run("aborted", 2, tmp_path)


@movable
def test_fixed_groups_say_how_to_make_others(tmp_path):
    run("refused", 2, tmp_path)


@pytest.mark.skipif(not hasattr(dist, "shrink_group"), reason="this PyTorch cannot shrink groups")
def test_groups_shrink(tmp_path):
    run("shrink", 4, tmp_path, killed=[1])
