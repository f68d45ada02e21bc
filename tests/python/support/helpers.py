"""Arrays whose values identify rank and place, and ranks that are threads."""

import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np

import hocket

ROOT = Path(__file__).parents[3]
RANK_COUNTS = [1, 2, 3, 4]
COUNTS = [0, 1, 2, 3, 17, 1000]

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
SMALL_FLOATS = [
    ml_dtypes.bfloat16,
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e5m2,
]
DTYPES = [
    np.dtype(d)
    for d in ["bool", *INTEGERS, "float16", "float32", "float64", "complex64", "complex128"]
    + SMALL_FLOATS
]


def values(rank, shape, dtype="float64"):
    """Small whole numbers, exact in every dtype, that differ by rank and by place."""
    count = int(np.prod(shape))
    numbers = (np.arange(count) * 3 + rank * 5 + np.arange(count) // 7) % 4
    dtype = np.dtype(dtype)
    if dtype == bool:
        return (numbers % 2 == 1).reshape(shape)
    array = numbers.astype("float64")
    if dtype.kind == "c":
        array = array + 1j * ((numbers + rank) % 3)
    return array.astype(dtype).reshape(shape)


def threads(n, fn, *args):
    """`fn(comm, *args)` on `n` ranks that are threads."""
    return hocket.run_threads(fn, n, *args)


def fortran_module(folder):
    """Makes hocket's module for Fortran in `folder`, and returns its path."""
    module = folder / "hocket.f90"
    generator = ROOT / "src" / "interfaces" / "capi" / "fortran.py"
    subprocess.run([sys.executable, generator, ROOT / "include", module], check=True, timeout=50)
    return module
