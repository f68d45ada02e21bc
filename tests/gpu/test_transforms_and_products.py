"""Transforms and products of arrays of GPUs from Python, two processes: run by tools/check/gpu_check.sh."""

from pathlib import Path

import pytest
from gpu_packages import count_gpus
from processes import run_job

HERE = Path(__file__).parent


@pytest.mark.parametrize("package", ["cupy", "torch"])
@pytest.mark.parametrize("program", ["fft_on_gpus.py", "matmul_on_gpus.py",
                                     "epilogs_on_gpus.py"])
def test_two_processes(program, package):
    if count_gpus(package) == 0:
        pytest.skip("there is no GPU")
    job = run_job(2, HERE / program, package, timeout=150)
    assert job.returncode == 0 and sorted(job.stdout.split("\n")) == ["", "[0] done", "[1] done"], (
        job.stdout
    )
