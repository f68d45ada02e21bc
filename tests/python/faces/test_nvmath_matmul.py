"""The face of nvmath.distributed.linalg.advanced, against NumPy. A process has one runtime."""

import itertools
import logging

import numpy as np
import pytest
from nvmath_ranks import on_processes

import hocket
from hocket.compat import nvmath_distributed as nvd
from hocket.compat.nvmath_distributed.distribution import (
    BindDistributionError,
    BlockCyclic,
    BlockNonCyclic,
    Box,
    ProcessGrid,
    Slab,
)
from hocket.compat.nvmath_distributed.linalg import ComputeType, advanced

ALLREDUCE = advanced.MatmulEpilog.ALLREDUCE


def numbers(random, shape, dtype):
    x = random.integers(-4, 5, size=shape)
    return (x + 1j * random.integers(-4, 5, size=shape) if "complex" in dtype else x).astype(dtype)


def part_of(whole, distribution, rank):
    """Returns a process's part, in Fortran order, by the distribution's indices."""
    if isinstance(distribution, Slab):
        cut = hocket.distribution.Slab(distribution.partition_dim)
        box = cut.box(whole.shape, rank, nvd.get_context().process_group.nranks)
        return np.asfortranarray(whole[tuple(map(slice, *box))])
    places = distribution.process_grid.grid.shape
    sizes = distribution.block_sizes
    if -1 in sizes:
        sizes = [-(-n // p) for n, p in zip(whole.shape, places)]
    at = distribution.process_grid.grid.place_of(rank)
    index = [
        [i for i in range(n) if (i // b + first) % p == a]
        for n, b, first, p, a in zip(whole.shape, sizes, distribution.first_process, places, at)
    ]
    return np.asfortranarray(whole[np.ix_(*index)])


def qualifiers_of(*pairs):
    qualifiers = np.zeros((3,), dtype=advanced.matrix_qualifiers_dtype)
    for i, (transposed, conjugated) in enumerate(pairs):
        qualifiers[i]["is_transpose"], qualifiers[i]["is_conjugate"] = transposed, conjugated
    return qualifiers


def after(x, transposed, conjugated):
    x = x.T if transposed else x
    return x.conj() if conjugated else x


def products(group, kinds, dtype, torch):
    """Twice, the second time with other operands; and with C, in place or not."""
    n = group.nranks
    high = 2 if n % 2 == 0 else 1
    grid = ProcessGrid(shape=(high, n // high), layout=ProcessGrid.Layout.COL_MAJOR)
    known = {
        "rows": Slab.X,
        "columns": Slab.Y,
        "row blocks": BlockNonCyclic(ProcessGrid(shape=(n, 1)), first_process=(n - 1, 0)),
        "column blocks": BlockNonCyclic(ProcessGrid(shape=(1, n))),
        "block": BlockNonCyclic(grid),
        "cyclic": BlockCyclic(grid, (3, 2)),
    }
    distributions = [known[kind] for kind in kinds]
    random = np.random.default_rng(5)  # the same on all processes
    give = __import__("torch").from_numpy if torch else (lambda x: x)
    take = np.asarray
    pairs = [(False, False), (True, False)] + ([(True, True)] if "complex" in dtype else [])
    for left, right, with_c, in_place in itertools.product(pairs, pairs, (False, True), (True, False)):
        qualifiers = qualifiers_of(left, right)
        plan = None
        for turn in range(2):
            a = numbers(random, (9, 10)[:: -1 if left[0] else 1], dtype)
            b = numbers(random, (10, 8)[:: -1 if right[0] else 1], dtype)
            c = numbers(random, (9, 8), dtype)
            mine = [give(part_of(x, d, group.rank)) for x, d in zip((a, b, c), distributions)]
            kept = take(mine[2]).copy()
            if not with_c:
                mine = mine[:2]
            beta = 3.0 if with_c else None
            if plan is None:
                plan = advanced.Matmul(*mine, distributions=distributions, alpha=2.0, beta=beta,
                                       qualifiers=qualifiers, options={"inplace": in_place})
                assert (plan.mm_traits.M, plan.mm_traits.N, plan.mm_traits.K) == (9, 8, 10)
                with pytest.raises(RuntimeError, match="before plan"):
                    plan.execute()
                plan.plan()
            else:
                plan.reset_operands(**dict(zip("abc", mine)), alpha=-1.0, beta=0.5 if with_c else None)
            alpha, beta = ((2, 3), (-1, 0.5))[turn]
            want = alpha * (after(a, *left) @ after(b, *right)) + (beta * c if with_c else 0)
            got = plan.execute()
            assert np.array_equal(take(got), part_of(want.astype(dtype), distributions[2], group.rank))
            if with_c:
                assert (got is mine[2]) == in_place
                assert in_place or np.array_equal(take(mine[2]), kept)
        plan.free()
        with pytest.raises(advanced.InvalidMatmulState):
            plan.execute()


CASES = [
    (1, ("rows", "columns", "cyclic"), "float64"),
    (2, ("rows", "rows", "columns"), "float32"),
    (2, ("columns", "row blocks", "rows"), "complex64"),
    (3, ("row blocks", "columns", "column blocks"), "complex128"),
    (4, ("block", "cyclic", "block"), "float64"),
    (4, ("cyclic", "rows", "cyclic"), "complex128"),
]


@pytest.mark.parametrize("n, kinds, dtype", CASES)
def test_as_numpy_does(n, kinds, dtype):
    on_processes(n, products, kinds, dtype, False)


def test_of_torch():
    pytest.importorskip("torch")
    on_processes(2, products, ("rows", "columns", "rows"), "complex64", True)


def summed(group):
    random = np.random.default_rng(2)
    n = group.nranks
    a, b = random.normal(size=(12, 5)), random.normal(size=(12, 6))
    c = np.asfortranarray(np.full((5, 6), 1.0 + group.rank))
    mine = [part_of(x, Slab.X, group.rank) for x in (a, b)]
    qualifiers = qualifiers_of((True, False))
    for distribution in (Slab.Y, Slab.X):
        arguments = {"distributions": [Slab.X, Slab.X, distribution], "qualifiers": qualifiers}
        got = advanced.matmul(*mine, **arguments, epilog=ALLREDUCE)
        assert got.flags.f_contiguous and np.allclose(got, a.T @ b)
        # Every process adds its own.
        added = c.copy(order="F")
        got = advanced.matmul(*mine, added, **arguments, epilog=ALLREDUCE, beta=2)
        assert got is added and np.allclose(got, a.T @ b + 2 * n * (n + 1) / 2)
    if n > 1:
        with pytest.raises(ValueError, match="global shape of C"):
            advanced.matmul(*mine, part_of(np.ones((5, 6)), Slab.X, group.rank), beta=1,
                            **arguments, epilog=ALLREDUCE)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_all_reduce(n):
    on_processes(n, summed)


def halves(group):
    random = np.random.default_rng(2)
    a = numbers(random, (6, 6), "float16")
    mine = part_of(a, Slab.X, group.rank)
    want = a.astype("float32") @ a.astype("float32")
    for result, name in ((None, "float16"), (0, "float32")):  # CUDA_R_32F
        got = advanced.matmul(mine, mine, distributions=[Slab.X] * 3, options={"result_type": result})
        assert got.dtype == name and np.array_equal(got, part_of(want.astype(name), Slab.X, group.rank))
    got = advanced.matmul(mine, mine, distributions=[Slab.X] * 3,
                          options={"compute_type": ComputeType.COMPUTE_16F})
    assert np.array_equal(got, part_of(want.astype("float16"), Slab.X, group.rank))
    with pytest.raises(ValueError, match="A result of float64 is not supported"):
        advanced.matmul(mine, mine, distributions=[Slab.X] * 3, options={"result_type": 1})


def test_halves():
    on_processes(2, halves)


def refusals(group):
    """One process gives the wrong thing, and all raise the same."""
    rank = group.rank
    x = np.asfortranarray(np.ones((2, 4)))
    rows = [Slab.X] * 3

    def refused(kind, text, *wrong, a=x, b=x, c=None, distributions=rows, **arguments):
        """`wrong` are the keywords that process 1 gives in another way."""
        given = {"a": a, "b": b, "c": c, "distributions": distributions, **arguments}
        if rank == 1:
            given.update(*wrong)
        with pytest.raises(kind, match=text):
            advanced.Matmul(given.pop("a"), given.pop("b"), **given).plan()
        one = np.ones(1)
        # the ranks agree, and can call again
        group.allreduce_buffer(one, op=nvd.process_group.ReductionOp.SUM)
        assert one[0] == group.nranks

    refused(ValueError, "The number of operands doesn't match across processes", {"c": x}, beta=1)
    refused(ValueError, "Operand B dtype does not match across processes: float64 != float32",
            {"b": x.astype("float32")})
    refused(ValueError, r"The dtype of operand A \(int64\) is not supported", {},
            a=x.astype(int), b=x.astype(int))
    refused(ValueError, "Operands must be two-dimensional", {"a": x[0]})
    refused(ValueError, "Batched matmul is not supported", {"a": x[None]})
    refused(ValueError, "Operand A doesn't have column-major", {"a": np.ascontiguousarray(x)})
    refused(ValueError, "options are inconsistent across processes", {"options": {"blocking": True}})
    refused(ValueError, "alpha does not match across processes: 1 != 2", {"alpha": 2}, alpha=1)
    refused(ValueError, "beta does not match across processes", {"beta": 2}, c=x, beta=1)
    refused(ValueError, "The qualifiers don't match across processes",
            {"qualifiers": qualifiers_of((True, False))})
    refused(ValueError, "The qualifiers must be specified as a NumPy array of length 3",
            {"qualifiers": np.zeros(3)})
    refused(ValueError, "Must provide distributions for A, B and C/D", {"distributions": rows[:2]})
    refused(ValueError, "Distribution for B doesn't match across processes",
            {"distributions": [Slab.X, Slab.Y, Slab.X]})
    refused(TypeError, "requires distributions compatible with BlockCyclic", {},
            distributions=[Box((0, 0), (2, 4))] * 3)
    refused(ValueError, "The problem size is inconsistent across processes",
            {"a": np.asfortranarray(np.ones((2, 3)))})
    refused(ValueError, "The 'K' extent must match", {}, a=np.asfortranarray(np.ones((2, 3))))
    refused(ValueError, "A value for beta must be provided if operand C is provided", {}, c=x)
    refused(ValueError, "Conjugate is not supported without transpose", {},
            qualifiers=qualifiers_of((False, True)))
    refused(ValueError, "The conjugate flag only applies to complex operands", {},
            qualifiers=qualifiers_of((True, True)))
    refused(ValueError, "The transpose flag is currently not supported for operand C", {}, c=x,
            beta=1, qualifiers=qualifiers_of((False, False), (False, False), (True, False)))
    refused(ValueError, "The global shape of C according to its distribution", {}, beta=1,
            c=np.asfortranarray(np.ones((2, 5))))
    refused(ValueError, "alpha one is not convertible to dtype 'float64'", {}, alpha="one")
    refused(ValueError, "Selected scale_type=.* are not supported for data types float64", {},
            options={"compute_type": ComputeType.COMPUTE_32F})
    refused(ValueError, "Unsupported compute type", {},
            options={"compute_type": ComputeType.COMPUTE_32I})
    refused(TypeError if rank == 1 else ValueError, "must be provided as an object", {"options": 3})
    refused(BindDistributionError, "don't fit", {"b": np.asfortranarray(np.ones((3, 4)))},
            b=np.asfortranarray(np.ones((1, 4))))


def test_refusals_are_those_of_all():
    on_processes(2, refusals)


def resets(group):
    x = np.asfortranarray(np.ones((2, 4)))
    with advanced.Matmul(x, x, distributions=[Slab.X] * 3) as one:
        one.plan(preferences={"epilog": {"aux_type": None}})
        for kind, text, wrong in (
            (ValueError, "does not include operand C", {"c": x}),
            (ValueError, "The data type of the new operand", {"a": x.astype("float32")}),
            (ValueError, "The extents of the new operand", {"b": x[:1]}),
            (ValueError, "requires at least one operand", {}),
        ):
            with pytest.raises(kind, match=text):
                one.reset_operands(**wrong)
        assert (one.execute() == 4).all()
        one.release_operands()
        with pytest.raises(RuntimeError, match="operands have been released"):
            one.execute()
        with pytest.raises(ValueError, match="all required operands must be provided.* Required: a, b"):
            one.reset_operands(a=x)
        one.reset_operands(a=x, b=2 * x)
        assert (one.execute(release_workspace=True) == 8).all()
        mixed = np.arange(8.0).reshape(2, 4)  # in C order
        one.reset_operands_unchecked(a=mixed, b=x)
        assert np.array_equal(one.execute(), mixed.sum(axis=1)[:, None] * np.ones((1, 4)))
        one.reset_operands(a=x, b=2 * x)
        one.plan()  # once more
        one.reset_operands(alpha=2)
        assert (one.execute() == 16).all()
    with advanced.Matmul(x, x, x.copy(order="F"), beta=1, distributions=[Slab.X] * 3) as one:
        one.plan()
        added = np.ones((2, 4))
        one.reset_operands(c=added)
        assert one.execute() is added and (added == 5).all()


def test_operands_are_reset():
    on_processes(2, resets)


def test_needs_the_runtime():
    x = np.asfortranarray(np.ones((2, 2)))
    with pytest.raises(RuntimeError, match="nvmath.distributed has not been initialized"):
        advanced.Matmul(x, x, distributions=[Slab.X] * 3)


def test_options():
    for wrong, text in (
        ({"sm_count_communication": 0}, "sm_count_communication must be a positive integer"),
        ({"blocking": False}, "blocking must be either True or 'auto'"),
        ({"compute_type": 1}, "1 is not a valid"),
    ):
        with pytest.raises(ValueError, match=text):
            advanced.MatmulOptions(**wrong)
    options = advanced.MatmulOptions(compute_type=68, algo_type=1, logger=logging.getLogger("own"))
    assert options.compute_type is advanced.MatmulComputeType.COMPUTE_32F and options.inplace
    assert advanced.MatmulPlanPreferences(epilog={"aux_type": 2}).epilog.aux_type == 2


def in_symmetric_memory(group):
    """The result is there too, where all operands are on all processes."""
    rank, n = group.rank, group.nranks
    spreads, qualifiers = (Slab(0), Slab(0), Slab(1)), qualifiers_of((1, 0), (0, 0), (0, 0))
    wide = np.arange(24.0 * n).reshape(4 * n, 6), np.arange(12.0 * n).reshape(4 * n, 3) - 7
    parts = [part_of(x, s, rank) for x, s in zip(wide, spreads)]
    there = [nvd.allocate_symmetric_memory(x.shape, np, axis_order="F") for x in parts]
    for x, part in zip(there, parts):
        x[:] = part
    for operands in (there, [there[0], parts[1]], [there[0], there[1] if rank else parts[1]]):
        got = advanced.matmul(*operands, distributions=spreads, qualifiers=qualifiers)
        assert np.array_equal(got, part_of(wide[0].T @ wide[1], spreads[2], rank))
        if operands is there:
            nvd.free_symmetric_memory(got)
        else:
            raises(TypeError, "not on symmetric memory", lambda: nvd.free_symmetric_memory(got))
    nvd.free_symmetric_memory(*there)


@pytest.mark.parametrize("n", [1, 3])
def test_results_in_symmetric_memory(n):
    on_processes(n, in_symmetric_memory)


# --- Operands of 8 bits -------------------------------------------------------------------------------

KINDS = ("float8_e4m3fn", "float8_e5m2")
LARGEST = {"float8_e4m3fn": 448, "float8_e5m2": 57344}
NUMBERS = {"float8_e4m3fn": 28, "float8_e5m2": 29, "float16": 2, "bfloat16": 14, "float32": 0}


def narrow(values, dtype):
    """Rounds once; a value that is too large becomes the largest number."""
    import ml_dtypes

    largest = LARGEST.get(dtype, np.inf)
    kind = getattr(ml_dtypes, dtype) if dtype not in ("float16", "float32") else dtype
    return np.clip(values, -largest, largest).astype("float32").astype(kind)


def raises(kind, say, call):
    with pytest.raises(kind, match=say):
        call()


def eight_bits(group):
    rank = group.rank
    random = np.random.default_rng(4)
    wide = [random.integers(-4, 5, shape) for shape in ((24, 8), (24, 16), (8, 16))]
    spreads = Slab(0), Slab(0), Slab(1)
    qualifiers = qualifiers_of((1, 0), (0, 0), (0, 0))
    for i, result in enumerate((*NUMBERS, *NUMBERS)):
        kind_a, kind_b = KINDS[i % 2], KINDS[i // 2 % 2]
        a, b = (part_of(narrow(x, kind), s, rank)
                for x, kind, s in zip(wide, (kind_a, kind_b), spreads))
        scales = {"a": 0.5, "b": np.full((1,), 4, "float32")}
        factor = 1.0
        if result in KINDS:
            scales["d"], factor = np.float32(0.25).reshape(()), 0.25
        product = 2.0 * (wide[0].T @ wide[1])
        options = {"result_type": NUMBERS[result], "inplace": False}
        got = advanced.matmul(a, b, distributions=spreads, qualifiers=qualifiers, options=options,
                              quantization_scales=scales)
        want = part_of(narrow(factor * product, result), spreads[2], rank)
        assert got.dtype == want.dtype and np.array_equal(got, want), (kind_a, kind_b, result)
        for kind_c in (result, "float16"):
            c = part_of(narrow(wide[2], kind_c), spreads[2], rank)
            more = dict(scales, c=8) if kind_c in KINDS else dict(scales)
            got = advanced.matmul(a, b, c=c, beta=-0.5, alpha=3, distributions=spreads,
                                  qualifiers=qualifiers, options=options, quantization_scales=more)
            whole = factor * (3 * product - 0.5 * more.get("c", 1) * wide[2])
            want = part_of(narrow(whole, result), spreads[2], rank)
            assert got.dtype == want.dtype and np.array_equal(got, want), (kind_c, result)


def eight_bits_further(group):
    """Epilogs, the largest magnitude, other scales, and in place."""
    rank = group.rank
    random = np.random.default_rng(4)
    wide = [random.integers(-4, 5, shape) for shape in ((16, 24), (24, 8))]
    spreads = Slab(1), Slab(0), Slab(1)
    a, b = (part_of(narrow(x, "float8_e4m3fn"), s, rank) for x, s in zip(wide, spreads))
    product = wide[0] @ wide[1]
    scales = {"a": 1, "b": 1, "d": 0.5}
    Epilog = advanced.MatmulEpilog
    bias = np.arange(16, dtype="float16") - 8
    got, aux = advanced.matmul(a, b, distributions=spreads, quantization_scales=scales,
                               options={"result_amax": True}, epilog=Epilog.RELU_BIAS,
                               epilog_inputs={"bias": bias})
    whole = np.maximum(product + np.arange(-8, 8)[:, None], 0)
    assert np.array_equal(got, part_of(narrow(whole / 2, "float8_e4m3fn"), spreads[2], rank))
    assert aux["result_amax"].dtype == "float32" and aux["result_amax"].tolist() == [whole.max()]
    sums = part_of(product.astype("float32"), spreads[2], rank)
    got, aux = advanced.matmul(a, b, distributions=spreads, quantization_scales=scales,
                               epilog=Epilog.RELU_AUX)
    assert np.array_equal(got, narrow(np.maximum(sums, 0) / 2, "float8_e4m3fn"))
    bits = np.unpackbits(aux["relu_aux"], axis=0, bitorder="little")[: len(sums)]
    assert np.array_equal(bits, sums >= 0)
    _, aux = advanced.matmul(a, b, distributions=spreads, quantization_scales=scales,
                             epilog=Epilog.GELU_AUX)
    assert aux["gelu_aux"].dtype == "float16"
    assert np.array_equal(aux["gelu_aux"][: len(sums)], sums)
    whole = advanced.matmul(a, b, distributions=spreads, quantization_scales=scales,
                            epilog=Epilog.ALLREDUCE)
    assert np.array_equal(whole, narrow(product / 2, "float8_e4m3fn"))
    scale = np.ones((1,), "float32")
    c = part_of(narrow(0 * product, "float8_e4m3fn"), spreads[2], rank)
    with advanced.Matmul(a, b, c, beta=1, distributions=spreads,
                         quantization_scales=dict(scales, a=scale, c=1)) as mm:
        mm.plan()
        assert mm.execute() is c
        assert np.array_equal(c, part_of(narrow(product / 2, "float8_e4m3fn"), spreads[2], rank))
        scale[0] = 0.25  # is read at each execution
        mm.reset_operands(beta=0, quantization_scales={"d": 2})
        mm.execute()
        assert np.array_equal(c, part_of(narrow(product / 2, "float8_e4m3fn"), spreads[2], rank))
        mm.release_operands()
        raises(ValueError, "quantization_scales must be provided",
               lambda: mm.reset_operands(a=a, b=b, c=c))
        mm.reset_operands(a=a, b=b, c=c, quantization_scales={"a": 1, "b": 1, "c": 1, "d": 1})
        mm.execute()
        assert np.array_equal(c, part_of(narrow(product, "float8_e4m3fn"), spreads[2], rank))


def eight_bits_refused(group):
    whole = narrow(np.ones((16, 16)), "float8_e4m3fn")
    a, b = (part_of(whole, Slab(0), group.rank) for _ in range(2))
    spreads = Slab(0), Slab(0), Slab(1)
    fine = {"a": 1, "b": 1, "d": 1}
    last = group.rank == group.nranks - 1

    def call(scales=fine, kind=ValueError, say="", everybody=False, epilog=None, **options):
        mine = scales if last or everybody else fine
        raises(kind, say, lambda: advanced.matmul(
            a, b, distributions=spreads, options=options, epilog=epilog, quantization_scales=mine))

    call(None, say="Scales are required for narrow-precision")
    call({"a": 1, "b": 1}, say="Scale for D is not specified")
    call(dict(fine, c=1), say="Quantization scaling is not supported for C")
    call(fine, say="Quantization scaling is not supported for D", result_type=0)
    call(dict(fine, a=np.ones(2, "float32")), say=r"The scale for A must be of shape \(1,\) or \(\)")
    call(dict(fine, b=np.ones(1)), say="The scale for B must be float32 type. Got float64 instead.")
    call(dict(fine, b="one"), kind=TypeError, say="The quantization scaling tensor for B must belong")
    call(kind=RuntimeError, say=r"MXFP8 \(block_scaling=True\) is not supported", block_scaling=True)
    call(say="A result of float64 is not supported for data types float8_e4m3fn", result_type=1)
    call(say="The epilog DRELU is not supported for FP8 operands",
         epilog=advanced.MatmulEpilog.DRELU)
    wide = part_of(np.ones((16, 16)), Slab(0), group.rank)
    raises(ValueError, "result_amax=True is allowed only", lambda: advanced.matmul(
        wide, wide, distributions=spreads, options={"result_amax": True}))
    raises(ValueError, "Unsupported combination of dtypes", lambda: advanced.matmul(
        a, wide.astype("float16"), distributions=spreads, quantization_scales=fine))


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("job", [eight_bits, eight_bits_further, eight_bits_refused])
def test_eight_bits(job, n):
    pytest.importorskip("ml_dtypes")
    on_processes(n, job)
