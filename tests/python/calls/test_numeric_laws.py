"""Laws of transforms and products, by each way that carries them."""

import ctypes.util
from pathlib import Path

import numeric_laws
import pytest
from helpers import run_job, threads


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8])
def test_between_threads(n, monkeypatch):
    """Uses the libraries that are always there. A BLAS with threads is slow if ranks are
    threads, too.
    """
    monkeypatch.setenv("HOCKET_FFT_LIBRARY", "eigen")
    monkeypatch.setenv("HOCKET_BLAS_LIBRARY", "none")
    threads(n, lambda comm: numeric_laws.check(comm, n, 12))


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("hosts", [1, 2])
def test_between_processes(n, hosts):
    """By the libraries that are found; by shared memory, and between hosts that are pretended."""
    env = {"HOCKET_DEADLINE": "40", "OPENBLAS_NUM_THREADS": "1"}
    if hosts > 1:
        if ctypes.util.find_library("ucp") is None:
            pytest.skip("there is no UCX here")
        env["HOCKET_TEST_HOSTS"] = str(hosts)
    done = run_job(n, Path(numeric_laws.__file__), str(10 * n + hosts), "6", env=env)
    assert done.returncode == 0 and done.stdout.count("right") == n, done.stdout
