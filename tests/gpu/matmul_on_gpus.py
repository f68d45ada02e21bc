"""Products of matrices of GPUs, the ranks' or a shared one: ``python matmul_on_gpus.py PACKAGE``, under
hocket run. PACKAGE is cupy or torch."""

import importlib
import sys

import numpy as np

import hocket
from hocket.compat import nvmath_distributed as nvd
from hocket.compat.nvmath_distributed.linalg import advanced
from hocket.distribution import BlockCyclic, ProcessGrid, Slab
from hocket.linalg import Matmul, matmul

xp = importlib.import_module(sys.argv[1])
IS_TORCH = sys.argv[1] == "torch"
world = hocket.init()
rank, n = world.rank, world.size
gpus = xp.cuda.device_count() if IS_TORCH else xp.cuda.runtime.getDeviceCount()
gpu = rank % gpus
xp.cuda.set_device(gpu) if IS_TORCH else xp.cuda.Device(gpu).use()
random = np.random.default_rng(3)


def put(x, order="C"):
    if not IS_TORCH:
        return xp.asarray(x, order=order)
    turned = np.ascontiguousarray(x if order == "C" else x.T)
    made = xp.from_numpy(turned).cuda()
    return made if order == "C" else made.T


def as_numpy(x):
    return x.cpu().numpy() if IS_TORCH else xp.asnumpy(x)


def whole(shape, dtype="float64"):
    x = random.standard_normal(shape)
    return (x + 1j * random.standard_normal(shape) if dtype.startswith("c") else x).astype(dtype)


def part(x, spread):
    if isinstance(spread, str):
        return x
    if isinstance(spread, Slab):
        return x[tuple(map(slice, *spread.box(x.shape, rank, n)))]
    return x[np.ix_(*spread.indices(x.shape, rank))]


def close(got, wanted, tolerance=1e-12):
    assert tuple(got.shape) == wanted.shape, (got.shape, wanted.shape)
    error = abs(as_numpy(got).astype("complex128") - wanted).max(initial=0)
    assert error <= tolerance * max(1, abs(wanted).max(initial=0)), error


def plans():
    blocks = BlockCyclic(ProcessGrid((1, n)), (32, 48))
    m, k, width = 300, 200, 250
    for dtype, tolerance in (("float64", 1e-12), ("float32", 1e-5), ("complex128", 1e-12),
                             ("complex64", 1e-5), ("float16", 4e-3)):
        for form in ("gathered", "reduced"):
            for order in ("C", "F"):
                a, b, c = whole((k, m), dtype), whole((k, width), dtype), whole((m, width), dtype)
                product = Matmul(world, (m, width, k), Slab(0), blocks, Slab(1), op_a="conjugate",
                                 dtype=dtype, form=form, order=order, gpu=gpu)
                assert product.library.startswith("cuBLAS "), product.library
                wide = np.result_type(dtype, "float64")
                wanted = 2 * (a.astype(wide).conj().T @ b.astype(wide)) + c.astype(wide)
                given = [put(part(x, spread), order)
                         for x, spread in ((a, Slab(0)), (b, blocks), (c, Slab(1)))]
                for _ in range(2):
                    close(product(*given, alpha=2), part(wanted, Slab(1)), tolerance)
                assert product(*given, out=given[2], alpha=2) is given[2]
                close(given[2], part(wanted, Slab(1)), tolerance)


def once():
    a, b = whole((64, 40)), whole((40, 24))
    close(matmul(world, put(part(a, Slab(0))), put(part(b, Slab(0)))), part(a @ b, Slab(0)))
    x = put(part(a, Slab(0)))
    close(matmul(world, x, x, op_a="transpose", spread_out="replicated"), a.T @ a)


def refusals():
    plan = Matmul(world, (4, 4, 4), Slab(0), Slab(0), Slab(0), gpu=gpu)
    x = put(part(whole((4, 4)), Slab(0)))
    try:
        plan(as_numpy(x), x)
    except hocket.InvalidArgument as error:
        assert "host's memory" in str(error), error
    else:
        raise AssertionError("an array of the host was taken")
    plan(x, x)


def on_streams():
    size = 512
    a, x = whole((size, size)), whole((size, size))
    a = np.linalg.qr(a)[0]
    there = Matmul(world, (size, size, size), Slab(0), Slab(0), Slab(0), gpu=gpu)
    back = Matmul(world, (size, size, size), Slab(1), Slab(0), Slab(0), op_a="none", gpu=gpu)
    stream = xp.cuda.Stream() if IS_TORCH else xp.cuda.Stream(non_blocking=True)
    turn, turn_back = put(part(a, Slab(0))), put(part(a.T, Slab(1)))
    here = put(part(x, Slab(0)))
    y = put(0 * part(x, Slab(0)))
    xp.cuda.synchronize() if IS_TORCH else xp.cuda.Device().synchronize()
    for _ in range(5):
        there(turn, here, out=y, stream=stream)
        back(turn_back, y, out=here, stream=stream)
    stream.synchronize()
    close(here, part(x, Slab(0)), 1e-10)


def by_nvmath_s_names():
    nvd.initialize(gpu, nvd.HocketProcessGroup(world), ["nccl"])
    slab = nvd.distribution.Slab
    m, k, width = 96, 64, 80
    for dtype, tolerance in (("float64", 1e-12), ("complex64", 1e-5), ("float16", 4e-3)):
        a, b, c = whole((k, m), dtype), whole((k, width), dtype), whole((m, width), dtype)
        qualifiers = np.zeros((3,), dtype=advanced.matrix_qualifiers_dtype)
        qualifiers[0]["is_transpose"] = True
        wide = np.result_type(dtype, "float64")
        wanted = a.astype(wide).T @ b.astype(wide)
        mine = [put(part(x, Slab(1)), "F") for x in (a, b)]
        options = {"blocking": True}
        # A by columns and transposed, B by columns, D by columns.
        got = advanced.matmul(*mine, distributions=[slab.Y, slab.Y, slab.Y], qualifiers=qualifiers,
                              options=options)
        close(got, part(wanted, Slab(1)), tolerance)
        added = put(part(c, Slab(1)), "F")
        with advanced.Matmul(*mine, c=added, distributions=[slab.Y] * 3, alpha=2, beta=3,
                             qualifiers=qualifiers, options=options) as one:
            one.plan()
            got = one.execute()
            close(got, part(2 * wanted + 3 * c.astype(wide), Slab(1)), tolerance)
            assert got is added
    nvd.finalize()


for step in (plans, once, refusals, on_streams, by_nvmath_s_names):
    step()
print("done")
