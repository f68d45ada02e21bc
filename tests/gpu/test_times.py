"""The times that calls ran on their streams, in a job's metrics: run by tools/check/gpu_check.sh."""

import os
import re
import time
import urllib.request

import pytest
from gpu_packages import count_gpus
from processes import free_address

import hocket

cupy = pytest.importorskip("cupy")
from test_shared_gpu import has_mps  # noqa: E402

GPUS = count_gpus("cupy")
pytestmark = pytest.mark.skipif(
    GPUS < 2 and not (GPUS == 1 and has_mps()),
    reason=f"two GPUs, or one under NVIDIA's MPS, are wanted; there are {GPUS}",
)
CALLS = 20
LATE = 0.3  # seconds


def scrape():
    with urllib.request.urlopen(f"http://{os.environ['HOCKET_METRICS']}/metrics", timeout=20) as reply:
        return reply.read().decode()


def of_all_reduce(text, suffix):
    sample = rf'^hocket_gpu_call_duration_seconds_{suffix}{{call="all_reduce",.*}} (\S+)$'
    return float(re.search(sample, text, re.M).group(1))


def measure(comm):
    """Seconds between two events of CuPy's around the calls; of rank 0 what was served, too."""
    cupy.cuda.Device(comm.rank % GPUS).use()
    stream = cupy.cuda.Stream(non_blocking=True)
    x = cupy.ones(1 << 20, "float32")
    cupy.cuda.Device().synchronize()
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record(stream)
    for i in range(CALLS):
        if i == CALLS - 1:
            comm.barrier()
            if comm.rank == 1:
                time.sleep(LATE)
        comm.all_reduce(x, stream=stream)
    end.record(stream)
    stream.synchronize()
    comm.broadcast(x, root=0, stream=stream)  # who makes the next call counts the last ones
    comm.barrier()
    return cupy.cuda.get_elapsed_time(begin, end) / 1e3, scrape() if comm.rank == 0 else ""


def test_times_on_streams_are_served(monkeypatch):
    monkeypatch.setenv("HOCKET_METRICS", free_address())
    (own, text), (other, _) = hocket.spawn(measure, 2)
    assert of_all_reduce(text, "count") == 2 * CALLS
    # Rank 0's last call waited for rank 1's.
    assert 0.9 * LATE < of_all_reduce(text, "sum") < own + other
