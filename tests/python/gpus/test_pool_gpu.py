"""A pool whose workers are GPUs: fake ones, on which streams are threads and nothing waits."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from processes import BUILD, PACKAGE

SUPPORT = Path(__file__).parents[1] / "support"
FAKE = BUILD / "fake_cuda"
pytestmark = pytest.mark.skipif(not FAKE.exists(), reason="this build has no fake driver")

PRELUDE = """
import contextlib
import cupy
import numpy as np
import hocket
DEVICES = [2, 0, 1]
pool = hocket.DevicePool(devices=DEVICES, engines=["local"])
mine = [cupy.stream_on(device) for device in DEVICES]
def arrays(shape=(1000,)):
    made = []
    for i, device in enumerate(DEVICES):
        with cupy.Device(device):
            made.append(cupy.ndarray(np.arange(float(np.prod(shape))).reshape(shape) * (i + 1)))
    return made
def finish():
    for stream in mine:
        stream.synchronize()
stack = contextlib.ExitStack()
for stream in mine:
    stack.enter_context(stream)
"""


def run(program):
    package = str(PACKAGE)
    paths = [package, str(SUPPORT / "stand_ins" / "gpu_cupy"), str(SUPPORT)]
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "LD_LIBRARY_PATH": str(FAKE),
             "HOCKET_NCCL_LIBRARY": "none"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=50,
    )
    assert done.returncode == 0, done.stdout


def test_members():
    run("""
assert pool.devices == (2, 0, 1) and pool.size == 3 and pool.module is cupy
assert [[s.device_id for s in pair] for pair in pool.streams] == [[2, 2], [0, 0], [1, 1]]
assert len({s.ptr for pair in pool.streams for s in pair}) == 6
def where(worker):
    return worker.device, cupy.Device().id, cupy.get_current_stream().ptr
for i, (device, current, stream) in enumerate(pool.run(where)):
    assert device == current == DEVICES[i] and stream == pool.streams[i][1].ptr
pool.close()
""")


def test_calls_follow_each_other_without_waiting():
    run("""
for _ in range(10):
    x = arrays()
    total = sum(a.host.copy() for a in x)
    assert pool.all_reduce(x)[0] is x[0]
    copies = pool.broadcast(x[1])                      # of what the call before will leave
    def add(worker):
        worker.communicator.all_reduce(copies[worker.index])
        return worker.communicator.all_reduce(x[worker.index], op="max")
    pool.run(add)
    (one,) = [pool.reduce(copies, worker=2)]
    finish()
    for a, c in zip(x, copies):
        assert np.array_equal(a.host, total) and np.array_equal(c.host, 3 * total)
    assert np.array_equal(one.host, 9 * total)
""")


def test_forms():
    run("""
x = arrays((4, 6))
before = [a.host.copy() for a in x]
pool.exchange_halo(x, [1, 3], 1, axis=0)
out = arrays((4, 6))
pool.all_reduce(x, "sum", out, group=2)
finish()
before[0][1], before[1][1] = before[1][1].copy(), before[0][1].copy()
before[1][3], before[2][3] = before[2][3].copy(), before[1][3].copy()
assert all(np.array_equal(a.host, b) for a, b in zip(x, before))
assert np.array_equal(out[0].host, before[0] + before[1])
assert np.array_equal(out[1].host, out[0].host) and np.array_equal(out[2].host, before[2])
host = np.arange(5.0)
copies = pool.distribute([host, host * 2], [1, 0, 1])
finish()
assert [c.host[4] for c in copies] == [8, 4, 8]
""")


def test_halos_as_on_the_host():
    run("""
def process(comm):
    devices = [[0, 1], [3, 2]][comm.rank]
    first = 2 * comm.rank
    mine = [cupy.stream_on(device) for device in devices]
    values = [np.arange(2 * 20 * 3.0).reshape(2, 20, 3) * (first + i + 1) for i in range(2)]
    made = []
    for i, device in enumerate(devices):
        with cupy.Device(device):
            made.append(cupy.ndarray(values[i]))
    with contextlib.ExitStack() as stack:
        for stream in mine:
            stack.enter_context(stream)
        how = {"across": comm, "axis": 1, "outer_seams": (5 * first, 5 * (first + 2))}
        if comm.rank == 1:
            how["outer_seams"] = (10, 0)
        with hocket.DevicePool(devices=devices, engines=["local"]) as own:
            with hocket.DevicePool(2) as host:
                for mode in ("swap", "blend"):
                    own.exchange_halo(made, [5 * (first + 1)], 3, mode=mode, **how)
                    host.exchange_halo(values, [5 * (first + 1)], 3, mode=mode, **how)
                for stream in mine:
                    stream.synchronize()
        assert all(np.array_equal(a.host, b) for a, b in zip(made, values))
pool.close()
hocket.run_threads(process, 2)
""")


def test_what_is_refused():
    run("""
def refused(call, text):
    try:
        call()
    except hocket.InvalidArgument as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)
x = arrays()
refused(lambda: pool.all_reduce([x[1], x[0], x[2]]), "lies on GPU 0, expected on its worker's GPU 2")
refused(lambda: pool.all_reduce([np.ones(3)] * 3), "in host memory, expected on its worker's GPU")
refused(lambda: hocket.DevicePool(devices=[64]), "device 64 is not there")
refused(lambda: pool.all_reduce(x, across=hocket.init(), fixed=True), "a fixed order exclude")
try:
    pool.map(lambda a: 1 / 0, x)
except ZeroDivisionError:
    pass
total = sum(a.host.copy() for a in x)
pool.all_reduce(x)
finish()
assert np.array_equal(x[0].host, total)
with hocket.DevicePool(2) as other:
    refused(lambda: other.all_reduce(x[:2]), "workers are of the host")
""")


def test_workers_may_share_a_gpu():
    run("""
DEVICES = [1, 0, 1]
with hocket.DevicePool(devices=DEVICES) as shared:
    streams = [pair[1].ptr for pair in shared.streams]
    assert shared.devices == (1, 0, 1) and len(set(streams)) == 3
    with contextlib.ExitStack() as stack:
        mine = [cupy.stream_on(device) for device in (0, 1)]
        for stream in mine:
            stack.enter_context(stream)
        for _ in range(5):
            x = arrays()
            total = sum(a.host.copy() for a in x)
            shared.all_reduce(x)
            copies = shared.broadcast(x[2])
            doubled = shared.run(lambda worker: worker.communicator.all_reduce(copies[worker.index]))
            for stream in mine:
                stream.synchronize()
            for a, c in zip(x, copies):
                assert np.array_equal(a.host, total) and np.array_equal(c.host, 3 * total)
""")


def test_across_processes():
    run("""
def process(comm):
    n, rank = comm.size, comm.rank
    devices = [[0, 1], [3, 2]][rank]
    mine = [cupy.stream_on(device) for device in devices]
    made, wanted = [], 0
    for i, device in enumerate(devices):
        with cupy.Device(device):
            made.append(cupy.ndarray(np.arange(50.0) * (2 * rank + i + 1)))
    with contextlib.ExitStack() as stack:
        for stream in mine:
            stack.enter_context(stream)
        with hocket.DevicePool(devices=devices, engines=["local"]) as own:
            total = own.reduce(made, worker=1, across=comm)
            mean = own.distribute(made, [0, 1])
            own.all_reduce(mean, "avg", across=comm)
            assert own.all_reduce(made, across=comm)[0] is made[0]
            own.all_reduce(made, "max", across=comm)
            for stream in mine:
                stream.synchronize()
    ten = np.arange(50.0) * 10
    assert np.array_equal(total.host, ten)
    assert all(np.array_equal(a.host, ten) for a in made)
    assert all(np.array_equal(a.host, ten / 4) for a in mean)
pool.close()
hocket.run_threads(process, 2)
""")
