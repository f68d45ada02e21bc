"""An operand with room for its result, and the processes' agreement on their operands."""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Sequence
from typing import Any, Literal, NoReturn, Optional

import numpy as np

from ... import distribution as _d
from ._fft_memory import cut_last, new_buffer
from ._fft_problem import FFTOptions, Problem, describe, own_copy, type_of
from ._runtime import communicator
from ._symmetric import allocate_symmetric_memory

def merged(said: dict[str, Any]) -> Problem:
    """Exchange the descriptions of all processes, and merge them. Collective."""
    return Problem(communicator().all_gather_object(said))


def tell(error: Exception) -> NoReturn:
    """Raise `error` on this process, and a ValueError on the others, which would wait otherwise."""
    with contextlib.suppress(ValueError):
        merged({"error": str(error)})
    raise error


def room(problem: Problem, boxes: Sequence[_d.Box]) -> int:
    """Return the size of the input or the result, whichever is larger, in real numbers. A complex
    number counts as two, and gaps count, too.
    """
    source, target = (list(box.shape) for box in boxes)
    real = {"R2C": source, "C2R": target}.get(problem.fft_type)
    if real is not None and problem.is_slab:
        half = problem.result_extents if problem.fft_type == "R2C" else problem.extents
        real[-1] = 2 * half[-1]
    counts = [math.prod(side) * (1 if side is real else 2) for side in (source, target)]
    return max(counts)


def allocate_operand(
    shape: Sequence[int],
    package: Any,
    *,
    input_dtype: Any = None,
    distribution: Any,
    memory_space: Optional[Literal["cpu", "cuda"]] = None,
    fft_type: Optional[Literal["C2C", "C2R", "R2C"]] = None,
    logger: Optional[logging.Logger] = None,
) -> Any:
    """Return an operand with room for the result. Collective.

    Parameters
    ----------
    shape : sequence of int
        Shape of this process's operand.
    package : module
        numpy, cupy or torch.
    input_dtype : dtype, optional
        By default the package's default dtype.
    distribution : Slab or pair of Box
        As in `FFT`.
    memory_space : {"cpu", "cuda"}, optional
        Required for PyTorch. GPUs' memory is symmetric; the program frees it by
        `free_symmetric_memory`.
    fft_type, logger : optional
        As in `FFTOptions`.
    """
    name = package.__name__
    if name not in ("numpy", "cupy", "torch"):
        raise ValueError(f"The package must be one of ('numpy', 'cupy', 'torch'). Got {package}.")
    if memory_space is None:
        if name == "torch":
            raise ValueError(f"You must provide memory_space for package {package}")
        memory_space = "cuda" if name == "cupy" else "cpu"
    if memory_space not in ("cuda", "cpu"):
        raise ValueError(f"memory_space must be 'cuda' or 'cpu'. Got {memory_space}")
    if (name, memory_space) in (("cupy", "cpu"), ("numpy", "cuda")):
        raise ValueError(f"'{memory_space}' memory space is not compatible with package {name}")
    if input_dtype is None:
        input_dtype = np.float64 if name != "torch" else package.get_default_dtype()
    dtype = str(input_dtype).rpartition(".")[2] if name == "torch" else np.dtype(input_dtype).name
    comm, mine = communicator(), own_copy(distribution, len(shape))
    problem = merged(
        describe(shape, True, dtype, name, memory_space, mine, FFTOptions(fft_type=fft_type))
    )
    type_of(dtype, fft_type)
    (logger or logging.getLogger()).info(
        f"Allocating an operand of {name} with shape {tuple(shape)} for {problem.fft_type}."
    )
    halves = 0
    for redistribute in (True, False):
        boxes = problem.boxes(mine, redistribute, comm.rank, comm.size)
        halves = max(halves, room(problem, boxes))
    is_real = problem.fft_type == "R2C"
    count = halves if is_real else (halves + 1) // 2
    if memory_space == "cuda":
        buffer = allocate_symmetric_memory(
            count, package, dtype=input_dtype, make_symmetric=True, logger=logger
        )
    else:
        buffer = new_buffer(package, count, input_dtype)
    padded = list(shape)
    if is_real and problem.is_slab:
        padded[-1] = 2 * problem.result_extents[-1]
    return cut_last(buffer[: math.prod(padded)].reshape(padded), shape[-1])
