"""Epilogs of products by nvmath's names, compared with the whole matrices in NumPy."""

import importlib
import itertools

import numpy as np
import pytest
from nvmath_ranks import on_processes
from test_nvmath_matmul import part_of, qualifiers_of

from hocket.compat.nvmath_distributed.distribution import BlockCyclic, ProcessGrid, Slab
from hocket.compat.nvmath_distributed.linalg import advanced

KINDS = [kind for kind in advanced.MatmulEpilog if kind.name not in ("DEFAULT", "ALLREDUCE")]
M, N, K = 21, 10, 12


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def slope(x):
    return (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5


def bits_of(x):
    """As RELU_AUX has them, by NumPy's own packing."""
    packed = np.packbits(x >= 0, axis=0, bitorder="little")
    full = np.zeros((-(-x.shape[0] // 128) * 16, x.shape[1]), np.uint8)
    full[: packed.shape[0]] = packed
    return full


def padded(x):
    full = np.zeros((-(-x.shape[0] // 8) * 8, x.shape[1]), x.dtype)
    full[: x.shape[0]] = x
    return full


def wanted(name, a, b, c, bias, before):
    """The whole result and further results by name."""
    x = 2 * (a @ b) + 0.5 * c
    aux = {}
    if "BIAS" in name:
        x = x + bias
    if "AUX" in name:
        aux["relu_aux" if name.startswith("RELU") else "gelu_aux"] = x
    if name.startswith("RELU"):
        x = np.maximum(x, 0)
    elif name.startswith("GELU"):
        x = gelu(x)
    elif name.startswith("DRELU"):
        x = np.where(before >= 0, x, 0)
    elif name.startswith("DGELU"):
        x = x * slope(before)
    if name == "BGRADA":
        aux["bgrada"] = a.sum(1)
    elif name == "BGRADB":
        aux["bgradb"] = b.sum(0)
    elif "BGRAD" in name:
        aux[name.lower()] = x.sum(1)
    return x, aux


def distributions_of(group, kind):
    n = group.nranks
    high = 2 if n % 2 == 0 else 1
    cyclic = BlockCyclic(ProcessGrid(shape=(high, n // high), layout=ProcessGrid.Layout.COL_MAJOR), (3, 2))
    return {
        "rows": [Slab.X, Slab.Y, Slab.X],
        "columns": [Slab.Y, Slab.X, Slab.Y],
        "cyclic": [cyclic] * 3,
    }[kind]


def ways_of(package):
    """Returns functions that turn an array of NumPy into one of `package`, and back."""
    if package == "numpy":
        return lambda x: x, np.asarray
    xp = importlib.import_module(package.split(".")[0])
    if package == "cupy":
        return lambda x: xp.asarray(x, order="K"), xp.asnumpy
    device = "cuda" if package == "torch.cuda" else "cpu"
    return lambda x: xp.from_numpy(x).to(device), lambda x: x.cpu().numpy()


def every_epilog(group, kind, dtype, package):
    give, take = ways_of(package)
    tolerance = {"rtol": 2e-3, "atol": 0.3} if dtype == "float16" else {"rtol": 1e-5, "atol": 1e-3}
    distributions = distributions_of(group, kind)
    random = np.random.default_rng(4)  # the same on all processes

    def mine(x, i):
        return part_of(x.astype(dtype), distributions[i], group.rank)

    for epilog, left, right in itertools.product(KINDS, (False, True), (False, True)):
        a, b, c, before = (random.integers(-3, 4, size=shape).astype("float64")
                           for shape in ((M, K), (K, N), (M, N), (M, N)))
        bias = random.integers(-5, 6, size=(M, 1)).astype("float64")
        inputs = {}
        if "BIAS" in epilog.name:
            own = mine(bias + np.zeros((M, N)), 2)[:, :1]
            if own.shape[1] == 0:  # no columns here, but the number of rows is known
                own = np.zeros((own.shape[0], 1), dtype)
            inputs["bias"] = give(own if left else own[:, 0].copy())
        if epilog.name.startswith("DRELU"):
            inputs["relu_aux"] = give(np.asfortranarray(bits_of(mine(before, 2))))
        if epilog.name.startswith("DGELU"):
            inputs["gelu_aux"] = give(np.asfortranarray(padded(mine(before, 2))))
        given = [give(np.asfortranarray(x)) for x in
                 (mine(a.T if left else a, 0), mine(b.T if right else b, 1), mine(c, 2))]
        got = advanced.matmul(
            *given, alpha=2, beta=0.5, distributions=distributions, epilog=epilog,
            epilog_inputs=inputs or None, qualifiers=qualifiers_of((left, False), (right, False)),
            options={"inplace": left})
        want, further = wanted(epilog.name, a, b, c, bias, before)
        aux = {}
        if further:
            got, aux = got
        assert (got is given[2]) == left
        assert str(got.dtype).endswith(dtype)
        assert np.allclose(take(got), mine(want, 2), **tolerance), epilog
        assert aux.keys() == further.keys()
        for name, value in aux.items():
            want, value = further[name], take(value)
            if name == "relu_aux":
                want = bits_of(part_of(want, distributions[2], group.rank))
                assert value.dtype == np.uint8
            elif name == "gelu_aux":
                want = padded(mine(want, 2))
            elif name != "bgradb":
                want = part_of(want[:, None] + np.zeros((M, N)), distributions[2], group.rank)[:, 0]
            assert value.shape == want.shape, (name, value.shape, want.shape)
            assert np.allclose(value, want, **tolerance), (epilog, name)


CASES = [(1, "rows", "float64"), (2, "rows", "float32"), (3, "columns", "float64"),
         (4, "cyclic", "float32"), (2, "columns", "float16"), (5, "rows", "float64")]


@pytest.mark.parametrize("n, kind, dtype", CASES)
def test_as_numpy_does(n, kind, dtype):
    on_processes(n, every_epilog, kind, dtype, "numpy")


def test_of_torch():
    pytest.importorskip("torch")
    on_processes(2, every_epilog, "cyclic", "float32", "torch")


def in_pieces(group):
    """More columns than are done at once, and a bias of another dtype."""
    x = np.asfortranarray(np.ones((300, 8), "float32"))
    y = np.asfortranarray(np.arange(8 * 700).reshape(8, 700).astype("float32") - 2000)
    bias = np.arange(300.0)
    n = group.nranks
    got = advanced.matmul(x, y, distributions=[Slab.X, Slab.Y, Slab.X],
                          epilog=advanced.MatmulEpilog.RELU_BIAS, epilog_inputs={"bias": bias})
    want = np.maximum(np.tile(y.sum(0), n) + bias[:, None], 0)
    assert got.shape == (300, 700 * n) and np.array_equal(got, want)


def test_in_pieces():
    on_processes(2, in_pieces)


def refusals(group):
    x = np.asfortranarray(np.ones((4, 8)))
    rows = [Slab.X] * 3
    bias = {"bias": np.ones(4)}

    def refused(kind, text, epilog, wrong, right=None, dtype="float64", preferences=None):
        """`wrong` is what process 1 alone gives."""
        with advanced.Matmul(x.astype(dtype), x.astype(dtype), distributions=rows) as one:
            with pytest.raises(kind, match=text):
                one.plan(epilog=epilog, epilog_inputs=wrong if group.rank == 1 else right,
                         preferences=preferences)
            one.plan()
            assert (one.execute() == 8).all()  # the ranks agree, and can call again

    kinds = advanced.MatmulEpilog
    refused(ValueError, "BIAS requires the following input tensors: {'bias'}", kinds.BIAS, None, bias)
    refused(ValueError, "RELU requires the following", kinds.RELU, bias)
    refused(ValueError, r"M dimension of the bias vector \(3\)", kinds.BIAS, {"bias": np.ones(3)}, bias)
    refused(ValueError, r"N dimension of the bias vector \(2\)", kinds.BIAS, {"bias": np.ones((4, 2))}, bias)
    refused(ValueError, "Batched matmul", kinds.BIAS, {"bias": np.ones((1, 4, 1))}, bias)
    refused(TypeError, "Library package mismatch for epilog", kinds.BIAS, {"bias": [1] * 4}, bias)
    refused(ValueError, "must be of rank 2", kinds.DRELU, {"relu_aux": np.ones(4, "uint8")},
            {"relu_aux": np.ones((16, 8), "uint8")})
    refused(ValueError, "must be 'uint8'", kinds.DRELU, {"relu_aux": np.ones((16, 8))},
            {"relu_aux": np.ones((16, 8), "uint8")})
    refused(ValueError, "must have the MM shape", kinds.DGELU, {"gelu_aux": np.ones((4, 8))},
            {"gelu_aux": np.ones((8, 8))})
    refused(ValueError, "not supported for complex operands", kinds.RELU, None, dtype="complex64")
    refused(ValueError, "Custom type for auxiliary outputs", kinds.RELU_AUX, None,
            preferences={"epilog": {"aux_type": 0}})
    refused(ValueError, "aux_amax=True is not supported", kinds.GELU_AUX, None,
            preferences={"epilog": {"aux_amax": True}})
    refused(ValueError, "Auxiliary outputs of CUDA_R_8F_E4M3", kinds.GELU_AUX, None,
            preferences={"epilog": {"aux_type": 28}})
    with advanced.Matmul(x, x, distributions=rows) as one:
        with pytest.raises(ValueError, match="epilog doesn't match across processes"):
            one.plan(epilog=kinds.GELU if group.rank == 1 else kinds.RELU)
        one.plan(epilog=kinds.BIAS, epilog_inputs=bias)
        assert (one.execute() == 9).all()
        for wrong, text in (({"bias": np.ones(4, "float32")}, "data type"), ({"bias": np.ones(3)}, "extents"),
                            ({"other": 1}, "no input named other")):
            with pytest.raises(ValueError, match=text):
                one.reset_operands(epilog_inputs=wrong)
        one.reset_operands(epilog_inputs={"bias": np.arange(4.0)})
        assert np.array_equal(one.execute()[:, 0], 8 + np.arange(4.0))
        one.release_operands()
        with pytest.raises(ValueError, match="must be provided"):
            one.reset_operands(a=x, b=x)
        one.reset_operands(a=x, b=x, epilog_inputs=bias)
        one.execute()


def test_refusals_are_those_of_all():
    on_processes(2, refusals)
