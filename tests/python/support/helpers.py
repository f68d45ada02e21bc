"""Arrays whose values identify rank and place, and jobs of processes."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np

import hocket
from hocket._command import find_command

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


def run_job(n, *arguments, before=(), timeout=50, **options):
    """`hocket run -n N BEFORE -- python ARGUMENTS`; the finished process, its output as text."""
    package = str(Path(hocket.__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": package, **options.pop("env", {})}
    return subprocess.run(
        [find_command(), "run", "-n", str(n), *before, "--", sys.executable, *map(str, arguments)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
        **options,
    )


def free_address():
    """An address of this host that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def run_by_hand(n, program):
    """Runs `python -c PROGRAM RANK ADDRESS` for each rank, without a launcher; their outputs."""
    package = str(Path(hocket.__file__).parent.parent)
    address = free_address()
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(rank), address],
            env={**os.environ, "PYTHONPATH": package},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(n)
    ]
    try:
        return [rank.communicate(timeout=50)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
