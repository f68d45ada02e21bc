"""Jobs of PyTorch processes for tests."""

import subprocess
from pathlib import Path

from processes import start, with_package

HERE = Path(__file__).parent


def run(program, name, n, folder, *arguments, killed=()):
    """``python PROGRAM NAME RANK N FILE ARGUMENTS`` for each rank; their outputs. All ranks but the
    killed ones must have ended well.
    """
    environment = with_package(OMP_NUM_THREADS="1")
    file = folder / "-".join(["store", *arguments])
    ranks = [
        start(HERE / program, name, rank, n, file, *arguments, env=environment,
              stderr=subprocess.PIPE)
        for rank in range(n)
    ]
    try:
        outputs = [rank.communicate(timeout=120) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    for rank, (process, output) in enumerate(zip(ranks, outputs)):
        code = -9 if rank in killed else 0
        assert process.returncode == code, f"rank {rank}:\n{output[0]}{output[1][-3000:]}"
    return [output for output, _ in outputs]
