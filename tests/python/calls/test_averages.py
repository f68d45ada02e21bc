"""Averages of integers lie between their arguments, in every call that reduces, for every type."""

from pathlib import Path

import helpers
import numpy as np
import pytest
from helpers import INTEGERS, threads
from processes import PACKAGE, run_job

import hocket


def rows(n, dtype):
    """For each of n ranks a row: extremes alone and together, halves, signs, and random numbers."""
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    columns = [[low] * n, [high] * n, [100] * n, [1] * n, [low, *[high] * (n - 1)], [high, *[low] * (n - 1)]]
    columns += [[k % 2 for k in range(n)], [(-1 if low else 1) * (k + 1) % high for k in range(n)]]
    random = np.random.default_rng(n)
    columns += random.integers(low, high, (300, n), dtype, endpoint=True).tolist()
    return np.array(columns, dtype).T.copy()


def averages(given, upto=None):
    """Exact, and rounded toward zero."""
    def one(column):
        total = sum(map(int, column))
        return abs(total) // len(column) * (1 if total >= 0 else -1)

    return np.array([one(column) for column in given[:upto].T], given.dtype)


def exscan(comm, x):
    out = np.zeros_like(x)
    comm.exscan(x, out=out, op="avg")
    return out


def reduced(comm, x):
    found = comm.reduce(x.copy(), root=0, op="avg")
    return comm.broadcast(found if comm.rank == 0 else np.empty_like(x))


CALLS = {
    "all_reduce": lambda comm, x: comm.all_reduce(x.copy(), op="avg"),
    "all_reduce, out": lambda comm, x: comm.all_reduce(x, out=np.empty_like(x), op="avg"),
    "all_reduce_async": lambda comm, x: comm.all_reduce_async(x.copy(), op="avg").wait(),
    "all_reduce_coalesced": lambda comm, x: np.concatenate(comm.all_reduce_coalesced([x[:3].copy(), x[3:].copy()], "avg")),
    "reduce": lambda comm, x: reduced(comm, x),
    "reduce_scatter_v": lambda comm, x: comm.all_gather_v(comm.reduce_scatter_v(x, op="avg")),
    "reduce_scatter": lambda comm, x: comm.all_gather(
        comm.reduce_scatter(np.resize(x, (comm.size, len(x))), op="avg"))[0],
    "hierarchical_all_reduce": lambda comm, x: comm.hierarchical_all_reduce(x.copy(), "avg"),
    "reproducible_sum": lambda comm, x: comm.reproducible_sum(x, np.empty_like(x), op="avg"),
}


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_they_are_exact_in_every_call(n, dtype):
    given = rows(n, dtype)
    wanted = averages(given)
    assert (given.min(0) <= wanted).all() and (wanted <= given.max(0)).all()

    def body(comm):
        mine = given[comm.rank]
        for name, call in CALLS.items():
            found = call(comm, mine)
            assert found.dtype == dtype and np.array_equal(found, wanted), name
        assert np.array_equal(comm.scan(mine.copy(), op="avg"), averages(given, comm.rank + 1))
        before = averages(given, comm.rank) if comm.rank else np.zeros_like(mine)
        assert np.array_equal(exscan(comm, mine), before)

    threads(n, body)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_pools_of_several_processes_average_as_exactly(dtype):
    given = rows(6, dtype)
    wanted = averages(given)

    def body(comm):
        first = comm.rank * (comm.rank + 1) // 2
        mine = [row.copy() for row in given[first : first + comm.rank + 1]]
        with hocket.DevicePool(len(mine)) as pool:
            pool.all_reduce(mine, "avg", across=comm)
        for array in mine:
            assert np.array_equal(array, wanted)

    threads(3, body)


# Ranks of several hosts, pretended ones: partial results travel between them.
BETWEEN_HOSTS = """
import os, sys
os.environ["HOCKET_HOST"] = f"{int(os.environ['HOCKET_RANK']) % 2}/"
import numpy as np
import test_averages as cases
import hocket

comm = hocket.init()
assert len(set(comm.hosts)) == 2
for dtype in cases.INTEGERS:
    given = cases.rows(comm.size, dtype)
    given = np.tile(given, 40)
    mine = given[comm.rank]
    for call in (cases.CALLS[name] for name in ("all_reduce", "reduce", "reduce_scatter", "reduce_scatter_v")):
        assert np.array_equal(call(comm, mine), cases.averages(given))
    assert np.array_equal(comm.scan(mine.copy(), op="avg"), cases.averages(given, comm.rank + 1))
"""


@pytest.mark.parametrize("algorithm", ["", "ring", "recursive_doubling", "rabenseifner", "gathered", "scattered"])
def test_between_hosts(tmp_path, algorithm):
    (tmp_path / "program.py").write_text(BETWEEN_HOSTS)
    paths = [str(PACKAGE), str(Path(__file__).parent),
             str(Path(helpers.__file__).parent)]
    environment = {"PYTHONPATH": ":".join(paths), "HOCKET_ALGORITHM": algorithm}
    done = run_job(4, tmp_path / "program.py", env=environment)
    assert done.returncode == 0, done.stdout
