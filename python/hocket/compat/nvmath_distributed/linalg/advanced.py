"""Matrix products with nvmath's names, over `hocket.linalg`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn, Optional

import numpy as np

from .... import linalg as _linalg
from ...._arrays.kinds import gpu_of
from .._base import BindDistributionError
from .._fft_memory import dtype_name
from .._lifetime import Planned
from .._packages import current_stream, package_of, synchronize
from .._runtime import communicator
from ..distribution import BlockCyclic
from . import _quantization
from ._arrays import in_dtype, in_symmetric_memory, largest_of, rounded, sum_of_all
from ._epilog import Epilog
from ._problem import NAMES, describe, in_columns, merge, pattern, spread_of, tell
from ._refused import refuse
from ._types import (
    DTYPES,
    FLOAT8,
    FLOAT8_RESULTS,
    SCALES,
    ComputeType,
    CudaDataType,
    MatmulAlgoType,
    MatmulEpilog,
    MatmulEpilogPreferences,
    MatmulOptions,
    MatmulPlanPreferences,
    MatmulQuantizationScales,
    goes_with,
    matrix_qualifiers_dtype,
    name_of_type,
    options_of,
    scale_of,
)

__all__ = [
    "InvalidMatmulState",
    "Matmul",
    "MatmulAlgoType",
    "MatmulComputeType",
    "MatmulEpilog",
    "MatmulEpilogPreferences",
    "MatmulOptions",
    "MatmulPlanPreferences",
    "MatmulQuantizationScales",
    "matmul",
    "matrix_qualifiers_dtype",
]

MatmulComputeType = ComputeType


def __getattr__(name: str) -> NoReturn:
    refuse("nvmath.distributed.linalg.advanced", name)


class InvalidMatmulState(Exception):
    """A Matmul was used after it was freed."""


class MMTraits(NamedTuple):
    """The extents of the whole product: `M` x `K` by `K` x `N`."""

    M: int
    N: int
    K: int


class Matmul(Planned):
    """A product over several processes, which is planned once and executed repeatedly.

    Parameters
    ----------
    a, b : array
        This process's parts: arrays of NumPy, PyTorch or CuPy in Fortran order.
    c : array, optional
        The summand, which is multiplied by `beta`. By default the result overwrites it.
    distributions : sequence of three distributions
        Distributions of A, of B, and of C and the result: Slab, BlockNonCyclic or BlockCyclic.
    alpha, beta : number, optional
        `beta` is required if `c` is given.
    qualifiers : array of three `matrix_qualifiers_dtype`, optional
        One for each of A, B and C. Only A and B can be transposed or conjugated, and only a transposed
        factor can be conjugated.
    options : MatmulOptions or dict, optional
    stream : optional
        A GPU's stream; by default the current stream of the operands' package.
    quantization_scales : MatmulQuantizationScales or dict, optional
        Required for 8-bit operands; without effect on others.

    Raises
    ------
    ValueError
        Raised on all processes if one process's arguments do not fit.
    """

    _name = "Matmul"
    _freed_error = InvalidMatmulState
    _released = "operands have been released. Use reset_operands() to provide new operands"

    def __init__(
        self,
        a: Any,
        b: Any,
        /,
        c: Any = None,
        *,
        distributions: Sequence[Any],
        alpha: Any = None,
        beta: Any = None,
        qualifiers: Any = None,
        options: Any = None,
        stream: Any = None,
        quantization_scales: Any = None,
    ) -> None:
        self._comm = communicator()
        operands = [a, b] if c is None else [a, b, c]
        try:
            self.options: MatmulOptions = options_of(
                MatmulOptions, options, "Distributed matrix multiplication options"
            )
            self.distributions: list[Any] = [d.copy() for d in distributions]
            said = describe(operands, distributions, self.options, alpha, beta, qualifiers)
        except Exception as error:
            tell(error)
        self.logger: logging.Logger = self.options.logger or logging.getLogger()
        said_by_all = self._comm.all_gather_object(said)
        self._wholes = merge(said_by_all)
        self._is_symmetric = all(one["symmetric"] for one in said_by_all)
        self.num_operands: int = len(operands)
        self._dtypes = said["dtypes"]
        self._check_types(beta)
        self._package, self._gpu = said["packages"][0], gpu_of(a)
        self._lazy = [self._is_lazy(operand) for operand in operands]
        self._set_qualifiers(said["qualifiers"])
        self._set_result_type()
        self._set_scales(alpha, beta)
        self._set_quantization(quantization_scales)
        self._operands: Optional[list[Any]] = operands
        self._shapes = [tuple(operand.shape) for operand in operands]
        (m, k), (inner, n) = (
            whole[::-1] if transposed else whole
            for whole, (transposed, _) in zip(self._wholes[:2], self._qualifiers)
        )
        if k != inner:
            raise ValueError(
                f"The 'K' extent must match for the operands: K={k} in operand A is not equal to "
                f"K={inner} in operand B."
            )
        self.mm_traits: MMTraits = MMTraits(m, n, k)
        self._plan: Optional[_linalg.Matmul] = None
        self._epilog: Optional[MatmulEpilog] = None
        self._after: Optional[Epilog] = None
        for i, whole in enumerate(self._wholes):
            self.logger.info(f"The global shape of operand {NAMES[i]} is {whole}.")
        self.logger.info(f"The matrix multiplication attributes are M={m}, N={n}, K={k}.")
        self.logger.info("The distributed Matmul operation has been created.")

    def _is_lazy(self, operand: Any) -> bool:
        return self._package == "torch" and bool(operand.is_conj())

    def _check_types(self, beta: Any) -> None:
        options, dtypes = self.options, self._dtypes
        self.inplace: bool = options.inplace and self.num_operands == 3
        if self.inplace and options.result_type not in (None, DTYPES[dtypes[2]][0]):
            raise ValueError(
                f"When specifying a result type ({name_of_type(options.result_type)}) different "
                f"from the c data type ({dtypes[2]}), inplace must be set to False."
            )
        if self.num_operands == 3 and beta is None:
            raise ValueError("A value for beta must be provided if operand C is provided.")
        self._is_float8 = set(dtypes[:2]) <= FLOAT8.keys()
        if dtypes[0] != dtypes[1] and not self._is_float8:
            raise ValueError(
                f"Unsupported combination of dtypes for operands A {dtypes[0]} and B {dtypes[1]}."
            )

    def _set_qualifiers(self, said: Sequence[Sequence[int]]) -> None:
        self._qualifiers = [(bool(t), bool(c) != lazy)
                            for (t, c), lazy in zip(said, [*self._lazy, False])]
        if self.num_operands == 3 or any(said[2]):
            if self._qualifiers[2][0]:
                raise ValueError("The transpose flag is currently not supported for operand C.")
            if self._qualifiers[2][1]:
                raise ValueError("The conjugate flag is currently not supported for operand C.")
        for transposed, conjugated in self._qualifiers[:2]:
            if conjugated and not transposed:
                raise ValueError("Conjugate is not supported without transpose")
        if any(c for _, c in self._qualifiers) and not self._dtypes[0].startswith("complex"):
            raise ValueError("The conjugate flag only applies to complex operands")

    def _set_result_type(self) -> None:
        own = self._dtypes[0]
        self._result = self._dtypes[2] if self.num_operands == 3 else own
        if self.options.result_type is not None:
            self._result = name_of_type(self.options.result_type)
        is_half = own in ("float16", "bfloat16")
        may = (own, *(("float32",) if is_half else FLOAT8_RESULTS if self._is_float8 else ()))
        for dtype in (self._result, *self._dtypes[2:]):
            if dtype not in may:
                raise ValueError(
                    f"A result of {dtype} is not supported for data types {own} (A) and "
                    f"{self._dtypes[1]} (B)."
                )
        if self.num_operands == 3 and self._dtypes[2] != self._result and not self._is_float8:
            raise ValueError(
                f"Operand C is {self._dtypes[2]}, and the result {self._result}: they must be the same."
            )

    def _set_scales(self, alpha: Any, beta: Any) -> None:
        dtype, options = self._dtypes[0], self.options
        compute, scale = options.compute_type, options.scale_type
        if scale is None and compute is not None:
            scale = scale_of(compute, dtype.startswith("complex"))
        if scale is not None and scale not in SCALES:
            raise ValueError(
                f"Unsupported scale type. The data type '{CudaDataType(scale)!r}' is currently not "
                "supported."
            )
        if compute is None:
            compute = DTYPES[dtype][2] if scale is None else SCALES[CudaDataType(scale)][1]
        scale = DTYPES[dtype][1] if scale is None else scale
        scale_of(compute, False)
        if not goes_with(dtype, compute, scale):
            raise ValueError(
                f"Selected scale_type={CudaDataType(scale)!r} compute_type={ComputeType(compute)!r} "
                f"are not supported for data types {dtype} (A) and {self._dtypes[1]} (B)."
            )
        self._scale_dtype = SCALES[CudaDataType(scale)][0]
        if beta is not None and self.num_operands == 2:
            self.logger.warning(
                f"Matmul: The provided beta value {beta} is ignored since operand C is not specified."
            )
        self._alpha = self._scaled("alpha", 1 if alpha is None else alpha)
        self._beta = self._scaled("beta", beta if self.num_operands == 3 else 0)

    def _set_quantization(self, given: Any) -> None:
        self._quantization = MatmulQuantizationScales()
        if self._is_float8:
            self._quantization = _quantization.agreed(given, self)
        elif given is not None:
            self.logger.warning(
                "Matmul: The provided scales are ignored, since they are only applicable to "
                "narrow-precision (FP8 and lower) operations."
            )
        if self.options.result_amax and self._result not in FLOAT8:
            raise ValueError(
                "result_amax=True is allowed only for narrow-precision (FP8 and lower) results"
            )

    def _scaled(self, name: str, value: Any) -> complex:
        kept = np.zeros((1,), self._scale_dtype)
        try:
            kept[0] = value
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"The value provided for {name} {value} is not convertible to dtype '{kept.dtype}'."
            ) from error
        return complex(kept[0])

    def plan(
        self,
        *,
        preferences: Any = None,
        epilog: Any = None,
        epilog_inputs: Any = None,
        stream: Any = None,
    ) -> None:
        """Make the plan. Collective.

        Parameters
        ----------
        preferences : MatmulPlanPreferences or dict, optional
            Preferences for an epilog's further results.
        epilog : MatmulEpilog, optional
            The operation after the product. With ALLREDUCE, every process gets the whole result,
            and every process's C is added to it.
        epilog_inputs : dict, optional
            The inputs of the epilog. The BIAS variants need "bias", with one element for each row
            of this process's part of the result. DRELU needs "relu_aux", which RELU_AUX returns.
            DGELU needs "gelu_aux", which GELU_AUX returns.
        stream : optional
            Without effect here, because the host makes the plan.
        """
        self._check()
        wanted = options_of(
            MatmulPlanPreferences, preferences, "Distributed matrix multiplication plan preferences"
        )
        if self._operands is None:
            raise RuntimeError("The Matmul has no operands. Please call reset_operands")
        if epilog is None and epilog_inputs is not None:
            self.logger.warning(
                f"Matmul: The provided epilog inputs {epilog_inputs.keys()} are ignored since an "
                "epilog is not specified."
            )
        epilog = MatmulEpilog(epilog) if epilog else None
        m, n, k = self.mm_traits
        is_summed = epilog == MatmulEpilog.ALLREDUCE
        grid = self.distributions[2].to(BlockCyclic, ndim=2, copy=True).process_grid.shape
        result = (m * grid[0], n * grid[1]) if is_summed else (m, n)
        if self.num_operands == 3:
            self._check_added(result, is_summed)
        self._bind(result)
        self._set_epilog(epilog, epilog_inputs, wanted.epilog)
        spreads = [spread_of(d, whole) for d, whole in zip(self.distributions, self._wholes)]
        d: Any = "replicated" if is_summed else spread_of(self.distributions[2], result)
        ops: list[Any]
        ops = [("conjugate" if c else "transpose") if t else "none" for t, c in self._qualifiers[:2]]
        whole = [*self._wholes[:2], (m, n)]
        self._expected_algo = pattern(self.distributions, whole, self._qualifiers, is_summed)
        self._plan = _linalg.Matmul(
            self._comm, (m, n, k), spreads[0], spreads[1], d, ops[0], ops[1], self._dtypes[0],
            self._dtype_within, "F", "reduced" if is_summed and self._comm.size > 1 else "cheapest",
            self._gpu, dtype_b=self._dtypes[1],
        )

    def _set_epilog(
        self, epilog: Optional[MatmulEpilog], inputs: Any, preferences: MatmulEpilogPreferences
    ) -> None:
        """Set up the epilog. An error on one process is raised on all processes."""
        after: Optional[Epilog] = None
        fault: Optional[Exception] = None
        if epilog not in (None, MatmulEpilog.ALLREDUCE):
            try:
                after = Epilog(epilog, self, inputs, preferences)
            except (ValueError, TypeError) as error:
                fault = error
        name = None if epilog is None else epilog.name
        said = self._comm.all_gather_object([name, type(fault).__name__, str(fault)])
        for other, kind, text in said:
            if other != said[0][0]:
                raise ValueError(f"The epilog doesn't match across processes: {said[0][0]} != {other}")
            if kind != "NoneType":
                raise (TypeError if kind == "TypeError" else ValueError)(text)
        self._epilog, self._after = epilog, after
        # Operations on narrow results work on the sums, before the sums are rounded.
        is_narrow = self._result in ("float16", "bfloat16", *FLOAT8)
        is_changed = after is not None or self.options.result_amax or (
            self.num_operands == 3 and self._dtypes[2] != self._result
        )
        self._dtype_within = "float32" if is_changed and is_narrow else self._result

    def _check_added(self, result: tuple[int, int], is_summed: bool) -> None:
        m, n, _ = self.mm_traits
        text = (
            f"The global shape of C according to its distribution ({list(self._wholes[2])}) is not the "
            "expected "
        )
        if is_summed:
            if self._wholes[2] != result:
                raise ValueError(f"{text}one when using AllReduce epilogue ({result})")
            if self._shapes[2] != (m, n):
                raise ValueError(
                    "The shape of C on every process when using AllReduce epilogue must be "
                    f"(m, n)={(m, n)}"
                )
        elif self._wholes[2] != result:
            raise ValueError(f"{text}shape ({result})")

    def _bind(self, result: tuple[int, int]) -> None:
        """Bind the distributions, and check this process's parts. An error on one process is raised
        on all processes.
        """
        fault: Optional[Exception] = None
        for i, distribution in enumerate(self.distributions):
            bound = distribution.copy()
            bound._whole = None
            try:
                if i < 2:
                    bound._bind(self._wholes[i], shape=self._shapes[i])
                else:
                    bound._bind(result, shape=self._shapes[2] if self.num_operands == 3 else None)
            except (BindDistributionError, ValueError) as error:
                fault = fault or error
            self.distributions[i] = bound
        for kind, text in self._comm.all_gather_object([type(fault).__name__, str(fault)]):
            if kind != "NoneType":
                raise {"BindDistributionError": BindDistributionError}.get(kind, ValueError)(text)

    def reset_operands(
        self,
        *,
        a: Any = None,
        b: Any = None,
        c: Any = None,
        alpha: Any = None,
        beta: Any = None,
        quantization_scales: Any = None,
        epilog_inputs: Any = None,
        stream: Any = None,
    ) -> None:
        """Replace operands by others of the same kind. After `release_operands`, all are required."""
        self._check()
        if c is not None and self.num_operands == 2:
            raise ValueError(
                "The matrix multiplication problem specification does not include operand C, so it "
                "cannot be reset."
            )
        given = [a, b, c][: self.num_operands]
        if self._operands is None:
            if any(x is None for x in given):
                names = "a, b, c" if self.num_operands == 3 else "a, b"
                raise ValueError(
                    "After release_operands(), all required operands must be provided to "
                    f"reset_operands(). Required: {names}."
                )
            if self._is_float8 and quantization_scales is None:
                raise ValueError(
                    "After release_operands(), quantization_scales must be provided to "
                    "reset_operands()."
                )
            operands = [None] * self.num_operands
        elif all(x is None for x in (a, b, c, alpha, beta, epilog_inputs, quantization_scales)):
            raise ValueError("reset_operands() requires at least one operand to be provided.")
        else:
            operands = list(self._operands)
        if alpha is not None:
            self._alpha = self._scaled("alpha", alpha)
        if beta is not None and self.num_operands == 2:
            self.logger.warning(
                f"Matmul: The provided beta value {beta} is ignored since operand C is not specified."
            )
        elif beta is not None:
            self._beta = self._scaled("beta", beta)
        for i, operand in enumerate(given):
            if operand is not None:
                self._check_other(operand, i)
                operands[i] = operand
        if self._after is not None:
            self._after.reset(epilog_inputs, must=self._operands is None)
        if self._is_float8 and quantization_scales is not None:
            scales = _quantization.checked(quantization_scales, self, must=self._operands is None)
            self._quantization = _quantization.updated(self._quantization, scales)
        self._operands = operands

    #: `reset_operands` is already cheap, so an unchecked form would not be faster.
    reset_operands_unchecked = reset_operands

    def release_operands(self) -> None:
        """Drop the operands and the inputs of the epilog. Call `reset_operands` before the next
        execution.
        """
        self._check()
        self._operands = None
        if self._after is not None:
            self._after.release()

    def _check_other(self, operand: Any, i: int) -> None:
        for what, is_same in (
            ("data type", dtype_name(operand) == self._dtypes[i]),
            ("extents", tuple(operand.shape) == self._shapes[i]),
        ):
            if not is_same:
                raise ValueError(
                    f"The {what} of the new operand must match the {what} of the original operand."
                )
        if package_of(operand) != self._package:
            raise TypeError(
                f"Library package mismatch: '{self._package}' => '{package_of(operand)}'"
            )
        if self._is_lazy(operand) != self._lazy[i]:
            raise ValueError(
                f"The provided operand {NAMES[i]} has different conjugate flag than the original "
                "operand"
            )
        if gpu_of(operand) != self._gpu:
            places = ["the CPU" if gpu is None else f"GPU {gpu}" for gpu in (gpu_of(operand), self._gpu)]
            raise ValueError(
                f"The memory space of the new operand must match that of the original one. The new "
                f"operand is on {places[0]}, and the original one on {places[1]}."
            )

    def execute(self, *, release_workspace: bool = False, stream: Any = None) -> Any:
        """Multiply. Collective.

        Returns
        -------
        array
            This process's part of the result, in Fortran order. If the product is in place, it is
            operand C itself. If the epilog has further results, a pair of the part and a dict of
            these results.
        """
        self._check_execution(self._plan is not None, self._operands is not None)
        assert self._operands is not None
        with current_stream(stream, self._operands[0]):
            result = self._multiply(self._operands)
            if self.options.blocking is True and self._gpu is not None:
                synchronize(result[0] if isinstance(result, tuple) else result)
        return result

    def _multiply(self, operands: Sequence[Any]) -> Any:
        assert self._plan is not None
        scale_a, scale_b, scale_c, scale_d = _quantization.values(self._quantization)
        # The result's scale is applied last.
        late, early = (1.0, scale_d) if self._dtype_within == self._result else (scale_d, 1.0)
        alpha = self._alpha * (scale_a * scale_b * early)
        beta = self._beta * (scale_c * early)
        # Operands that `reset_operands` has set may lie in another order.
        a, b = (in_columns(operand.conj() if lazy else operand)
                for operand, lazy in zip(operands[:2], self._lazy))
        made = None
        if self._is_symmetric and not self.inplace:
            made = in_symmetric_memory(
                self._plan.shapes[2], self._package, self._result, self.options.logger
            )
        out = made if self._dtype_within == self._result else None
        if self.num_operands == 2:
            got = self._plan(a, b, None, out, alpha)
            aux = self._follow(got, a, b, late)
            got = rounded(got, made, self._result)
            return (got, aux) if aux else got
        c = operands[2]
        own = in_columns(c)
        added = sum_of_all(self._comm, own) if self._epilog == MatmulEpilog.ALLREDUCE else own
        added = in_columns(in_dtype(added, self._dtype_within))
        if self.inplace and self._dtype_within == self._result:
            out = own
        got = self._plan(a, b, added, out, alpha, beta)
        aux = self._follow(got, a, b, late)
        if not self.inplace:
            got = rounded(got, made, self._result)
        elif got is not c:
            c[...] = in_dtype(got, self._result)
            got = c
        return (got, aux) if aux else got

    def _follow(self, got: Any, a: Any, b: Any, scale: float) -> dict[str, Any]:
        """Apply the epilog and the scale before the result is rounded. Return the further results.
        """
        aux = self._after(got, a, b) if self._after is not None else {}
        if self.options.result_amax:
            aux["result_amax"] = largest_of(got)
            self._comm.all_reduce(aux["result_amax"], op="max")
        if scale != 1:
            got *= scale
        return aux

    def free(self) -> None:
        """Release everything. It may be called again."""
        self._operands = self._plan = None
        super().free()


def matmul(
    a: Any,
    b: Any,
    /,
    c: Any = None,
    *,
    distributions: Sequence[Any],
    alpha: Any = None,
    beta: Any = None,
    epilog: Any = None,
    epilog_inputs: Any = None,
    qualifiers: Any = None,
    options: Any = None,
    preferences: Any = None,
    stream: Any = None,
    quantization_scales: Any = None,
) -> Any:
    """Multiply once; see `Matmul`."""
    with Matmul(
        a, b, c=c, distributions=distributions, alpha=alpha, beta=beta, qualifiers=qualifiers,
        options=options, stream=stream, quantization_scales=quantization_scales,
    ) as one:
        one.plan(
            preferences=preferences, epilog=epilog, epilog_inputs=epilog_inputs, stream=stream
        )
        return one.execute(stream=stream)
