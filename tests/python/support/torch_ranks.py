"""Jobs of PyTorch processes for tests."""

import os
import subprocess
import sys
from pathlib import Path

import hocket

HERE = Path(__file__).parent


def run(program, name, n, folder, *arguments):
    """``python PROGRAM NAME RANK N FILE ARGUMENTS`` for each rank; their outputs, all having ended
    well."""
    package = str(Path(hocket.__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": package, "OMP_NUM_THREADS": "1"}
    file = folder / "-".join(["store", *arguments])
    ranks = [
        subprocess.Popen(
            [sys.executable, HERE / program, name, str(rank), str(n), file, *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(n)
    ]
    try:
        outputs = [rank.communicate(timeout=120) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    for rank, (process, output) in enumerate(zip(ranks, outputs)):
        assert process.returncode == 0, f"rank {rank}:\n{output[0]}{output[1][-3000:]}"
    return [output for output, _ in outputs]
