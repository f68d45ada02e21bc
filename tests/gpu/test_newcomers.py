"""Newcomers whose arrays lie on GPUs: run by tools/check/gpu_check.sh."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from gpu_packages import count_gpus

cupy = pytest.importorskip("cupy")
BENCH = Path(__file__).parents[2] / "bench" / "newcomers.py"


@pytest.mark.parametrize("engines", ["", "nccl,shm,algorithm"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_a_full_team_on_gpus_again(ranks, engines):
    """A rank is killed within a call, and a spare takes its place and its GPU."""
    gpus = count_gpus("cupy")
    if gpus < 1 or (engines and gpus < ranks):
        pytest.skip(f"there are {gpus} GPUs")
    environment = {**os.environ, **({"HOCKET_ENGINES": engines} if engines else {})}
    command = [sys.executable, str(BENCH), "--device", "cuda", "--ranks", str(ranks)]
    done = subprocess.run(
        [*command, "--rounds", "3", "--count", "100003"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout
    assert "full team again" in done.stdout
