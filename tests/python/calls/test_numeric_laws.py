"""Laws of transforms and products, by each way that carries them."""


import numeric_laws
import pytest
from helpers import threads
from processes import HOSTS, run_on_hosts


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8])
def test_between_threads(n, monkeypatch):
    """Uses the libraries that are always there. A BLAS with threads is slow if ranks are
    threads, too.
    """
    monkeypatch.setenv("HOCKET_FFT_LIBRARY", "eigen")
    monkeypatch.setenv("HOCKET_BLAS_LIBRARY", "none")
    threads(n, lambda comm: numeric_laws.check(comm, n, 12))


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("hosts", HOSTS)
def test_between_processes(n, hosts):
    """By the libraries that are found."""
    laws = (numeric_laws.__file__, 10 * n + hosts, 6)
    run_on_hosts(n, hosts, *laws, OPENBLAS_NUM_THREADS="1")
