"""nvmath.distributed's face on arrays of GPUs: ``python nvmath_on_gpus.py PACKAGE``, under hocket run.

PACKAGE is cupy or torch; with HOCKET_TEST_DEVICE=cpu numpy or torch, in host memory.
"""

import importlib
import os
import sys

import numpy as np

import hocket
from hocket.compat import nvmath_distributed as nvd
from hocket.compat.nvmath_distributed.reshape import Reshape, reshape

ON_GPU = os.environ.get("HOCKET_TEST_DEVICE", "cuda") == "cuda"
xp = importlib.import_module(sys.argv[1])
IS_TORCH = sys.argv[1] == "torch"
world = hocket.init()
rank, n = world.rank, world.size


def as_numpy(x):
    if IS_TORCH:
        return x.cpu().numpy()
    return xp.asnumpy(x) if ON_GPU else x


def put(x):
    """A NumPy array in the memory that the test is of, in its order."""
    if not IS_TORCH:
        return xp.asarray(x, order="K") if ON_GPU else x
    flat = xp.from_numpy(np.ravel(x, order="K").copy())
    strides = [s // x.itemsize for s in x.strides]
    return (flat.cuda() if ON_GPU else flat).as_strided(x.shape, strides)


def raises(kind, call, words=""):
    try:
        call()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"no {kind.__name__}")


def use_gpu():
    if not ON_GPU:
        return "cpu"
    if IS_TORCH:
        xp.cuda.set_device(rank)
    else:
        xp.cuda.Device(rank).use()
    return rank


def current_gpu():
    if not ON_GPU:
        return "cpu"
    return xp.cuda.current_device() if IS_TORCH else xp.cuda.Device().id


def symmetric():
    dtype = xp.int32
    a = nvd.allocate_symmetric_memory((2, 5), xp, dtype=dtype)
    assert tuple(a.shape) == (2, 5) and a.dtype == dtype
    a[:] = rank + 1
    comm = hocket.Context.current().communicator
    comm.all_reduce(a)
    assert (as_numpy(a) == n * (n + 1) // 2).all()
    f = nvd.allocate_symmetric_memory((3, 4, 5), xp, axis_order="F", dtype=xp.float64)
    whole = np.arange(60.0).reshape(3, 4, 5) + rank
    f[:] = put(whole)
    assert np.array_equal(as_numpy(f), whole)
    strides = f.stride() if IS_TORCH else tuple(s // 8 for s in f.strides)
    assert strides == (1, 3, 12)
    raises(ValueError, lambda: nvd.allocate_symmetric_memory(rank + 1, xp), "not the same")
    b = nvd.allocate_symmetric_memory(rank + 1, xp, make_symmetric=True)
    assert tuple(b.shape) == (rank + 1,)
    raises(TypeError, lambda: nvd.free_symmetric_memory(put(np.ones(3)) if rank else b))
    raises(RuntimeError, lambda: nvd.free_symmetric_memory(a[1:]), "Unknown pointer")
    nvd.free_symmetric_memory(a, b)
    nvd.free_symmetric_memory(f)
    raises(RuntimeError, lambda: nvd.free_symmetric_memory(f), "Unknown pointer")


def slab(shape, axis):
    box = hocket.distribution.Slab(axis).box(shape, rank, n)
    whole = np.arange(np.prod(shape), dtype="complex64").reshape(shape)
    return nvd.distribution.Box(*box), whole[tuple(map(slice, *box))]


def symmetric_results():
    for shape in [(16,), (12, 8), (4, 6, 8)]:
        for order in "CF":
            source, x = slab(shape, 0)
            target, wanted = slab(shape, len(shape) - 1)
            a = nvd.allocate_symmetric_memory(x.shape, xp, dtype=xp.complex64, axis_order=order)
            a[...] = put(x)
            with Reshape(a, source, target) as again:
                again.plan()
                b, c = again.execute(), again.execute()
            for result in (b, c):
                assert type(result) is type(a) and np.array_equal(as_numpy(result), wanted)
            nvd.free_symmetric_memory(a, b, c)


def reshapes():
    for shape in [(16,), (12, 8), (4, 6, 8)]:
        for order in "CF":
            source, x = slab(shape, 0)
            target, wanted = slab(shape, len(shape) - 1)
            host = np.array(x, order=order)
            x = put(host)
            y = reshape(x, source, target)
            assert type(y) is type(x) and np.array_equal(as_numpy(y), wanted)
            with Reshape(x, source, target, options={"blocking": True}) as again:
                again.plan()
                again.reset_operand(put(host * 2))
                assert np.array_equal(as_numpy(again.execute()), wanted * 2)
    if ON_GPU:  # on a stream of the caller's
        stream = xp.cuda.Stream() if IS_TORCH else xp.cuda.Stream(non_blocking=True)
        source, x = slab((512, 512), 0)
        target, wanted = slab((512, 512), 1)
        x = put(x)
        xp.cuda.synchronize() if IS_TORCH else xp.cuda.Device().synchronize()
        for given in (stream, stream.cuda_stream if IS_TORCH else stream.ptr):
            y = reshape(x, source, target, stream=given)
            stream.synchronize()
            assert np.array_equal(as_numpy(y), wanted)


device = use_gpu()
for backends in (["nvshmem", "nccl"], ["nccl"]) if ON_GPU else (["shm"],):
    nvd.initialize(device, nvd.HocketProcessGroup(world), backends)
    context = nvd.get_context()
    assert context.device_id == device and current_gpu() == device
    assert context.nvshmem_available == ("nvshmem" in backends)
    assert (context.nccl_comm is not None) == ("nccl" in backends)
    if context.nvshmem_available or not ON_GPU:
        symmetric()
        symmetric_results()
    reshapes()
    nvd.finalize()
    assert nvd.get_context() is None
print("done")
