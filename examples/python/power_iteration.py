"""The largest eigenvalue of a matrix whose rows are spread over the ranks, by a program written for
cupyx.distributed: on CuPy where there is a GPU, else on NumPy, through hocket's face in both cases.

hocket run -n 4 -- python examples/python/power_iteration.py
"""

import os
import zlib

import numpy as np

import hocket.compat

hocket.compat.install("cupyx.distributed")
from cupyx.distributed import init_process_group  # noqa: E402

rank = int(os.environ.get("HOCKET_RANK", 0))
size = int(os.environ.get("HOCKET_SIZE", 1))
try:
    import cupy as xp

    xp.cuda.Device(rank % xp.cuda.runtime.getDeviceCount()).use()
except Exception:  # no CuPy, or no GPU for it
    xp = np

# Jobs that run at the same time need ports of their own.
port = 20000 + zlib.crc32(os.environ.get("HOCKET_JOB", "").encode()) % 10000
comm = init_process_group(size, rank, port=port)

# Rows of a symmetric matrix with eigenvalues 1, 2, ..., N: Q diag(1..N) Q, Q a reflection.
ROWS = 16
N = ROWS * size
v = np.ones(N) / np.sqrt(N)
reflection = np.eye(N) - 2 * np.outer(v, v)
whole = reflection @ np.diag(np.arange(1.0, N + 1)) @ reflection
mine = xp.asarray(whole[rank * ROWS : (rank + 1) * ROWS])

x = xp.asarray(np.random.default_rng(1).standard_normal(N))
part, square, total = xp.empty(ROWS), xp.empty(1), xp.empty(1)
for _ in range(15 * N):
    xp.dot(mine, x, out=part)
    square[0] = part @ part
    comm.all_reduce(square, total)  # the square of the whole vector's length
    part /= xp.sqrt(total[0])
    comm.all_gather(part, x, ROWS)
eigenvalue = float(xp.sqrt(total[0]))
assert abs(eigenvalue - N) < 1e-6 * N, eigenvalue
if rank == 0:
    print(f"{size} ranks, {xp.__name__}: the largest eigenvalue of {N} x {N} is {eigenvalue:.6f}")
