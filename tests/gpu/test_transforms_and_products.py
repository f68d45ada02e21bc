"""Transforms and products of arrays of GPUs from Python, two processes: run by tools/check/gpu_check.sh."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from test_faces import run_job  # noqa: E402


@pytest.mark.parametrize("package", ["cupy", "torch"])
@pytest.mark.parametrize("program", ["fft_on_gpus.py", "matmul_on_gpus.py",
                                     "epilogs_on_gpus.py"])
def test_two_processes(program, package):
    xp = pytest.importorskip(package)
    try:
        gpus = xp.cuda.device_count() if package == "torch" else xp.cuda.runtime.getDeviceCount()
    except xp.cuda.runtime.CUDARuntimeError:
        gpus = 0
    if gpus == 0:
        pytest.skip("there is no GPU")
    job = run_job(2, HERE / program, package)
    assert job.returncode == 0 and sorted(job.stdout.split("\n")) == ["", "[0] done", "[1] done"], (
        job.stdout
    )
