"""Ranks as new processes, ranks as threads, and Ctrl-C."""

import os
import signal
import sys
import threading

import numpy as np
import pytest
from helpers import RANK_COUNTS
from processes import free_address, run_by_hand, run_job

import hocket


def total(comm, offset):
    return float(comm.all_reduce(np.array(comm.rank + offset))), os.getpid(), comm.size


@pytest.mark.parametrize("n", RANK_COUNTS)
def test_spawn(n):
    results = hocket.spawn(total, n, 0.5)
    assert [r[0] for r in results] == [sum(range(n)) + n / 2] * n
    assert len({r[1] for r in results} | {os.getpid()}) == n + 1
    assert {r[2] for r in results} == {n}


def test_spawn_prints_what_the_ranks_print_and_nothing_else(capfd):
    hocket.spawn(total, 2, 0)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("n", [0, -1, None, "2", 1.5, 10**30])
def test_a_wrong_number_of_ranks(n):
    for start in (hocket.spawn, hocket.run_threads, lambda _, n: hocket.Cluster(n)):
        with pytest.raises(hocket.InvalidArgument, match="n is .*, expected"):
            start(total, n)


def test_the_function_and_the_number_swapped():
    for start in (hocket.spawn, hocket.run_threads):
        with pytest.raises(hocket.InvalidArgument, match=rf"comes first.*: hocket.{start.__name__}\(fn, 2\)"):
            start(2, total)
        with pytest.raises(hocket.InvalidArgument, match="fn is 2, which cannot be called; give a function"):
            start(2, 2)


def fails(comm):
    if comm.rank == 1:
        raise KeyError("the second rank")
    comm.barrier()


def test_spawn_raises_the_first_failure():
    with pytest.raises(KeyError, match="the second rank") as caught:
        hocket.spawn(fails, 3)
    account = str(caught.value.__cause__)
    assert "rank 1 failed" in account and "in fails" in account


def leaves(comm):
    if comm.rank == 1:
        os._exit(0)


def test_spawn_says_who_did_not_return():
    with pytest.raises(RuntimeError, match=r"ranks \[1\] ended before fn had returned"):
        hocket.spawn(leaves, 2)


@pytest.mark.parametrize("n", [0, -1, 2.0, "2"])
def test_spawn_of_a_number_that_is_none(n):
    """Before anything is started."""
    with pytest.raises((ValueError, TypeError), match="n is|interpreted as an integer"):
        hocket.spawn(leaves, n)


def test_spawn_takes_closures():
    pytest.importorskip("cloudpickle")
    wanted = 7
    assert hocket.spawn(lambda comm: comm.rank + wanted, 2) == [7, 8]


def test_run_threads_raises_the_first_failure():
    def body(comm):
        if comm.rank == 1:
            raise KeyError("the second rank")
        comm.barrier()

    with pytest.raises(KeyError, match="the second rank"):
        hocket.run_threads(body, 3)


def test_run_threads_can_be_interrupted():
    def body(comm):
        if comm.rank == 0:
            threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT]).start()
            comm.recv(np.empty(1), 1)
        else:
            comm.recv(np.empty(1), 0)

    with pytest.raises(KeyboardInterrupt):
        hocket.run_threads(body, 2)


WAITER = """
import numpy as np, os, signal, threading, sys, hocket
comm = hocket.init()
if comm.rank == 0:
    threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
try:
    if comm.rank == 0:
        comm.{call}
    else:
        comm.recv(np.empty(1), 0, tag=1)
except KeyboardInterrupt:
    print("interrupted", comm.rank)
    sys.exit(0)
except hocket.Error as error:
    print("ended", comm.rank, type(error).__name__)
    sys.exit(0)
"""


@pytest.mark.parametrize(
    "call",
    ["all_reduce(np.ones(3))", "recv(np.empty(1), 1)", "all_reduce_async(np.ones(3)).wait()", "barrier()"],
)
def test_ctrl_c_breaks_a_wait(call):
    job = run_job(2, "-c", WAITER.format(call=call))
    assert "interrupted 0" in job.stdout, job.stdout
    assert "ended 1 Aborted" in job.stdout or "ended 1 PeerDied" in job.stdout, job.stdout


def test_init_reports_bad_options(tmp_path):
    with pytest.raises(hocket.InvalidArgument, match="32"):
        hocket.init(key=b"short")
    with pytest.raises(hocket.Error):
        hocket.init(rank=2, size=2, address="127.0.0.1:1")
    with pytest.raises(hocket.Error):
        hocket.init(key=tmp_path / "absent")


BY_HAND = """
import sys, numpy as np, hocket
comm = hocket.init(rank=int(sys.argv[1]), size=2, address=sys.argv[2], key=bytes(range(32)), timeout=30)
print(comm.all_reduce(np.array(comm.rank + 1.0)))
"""


def test_processes_started_by_hand():
    assert run_by_hand(2, BY_HAND) == ["3.0\n", "3.0\n"]


def test_missing_rank_is_named():
    with pytest.raises(hocket.RendezvousError, match="1"):
        hocket.init(rank=0, size=2, address=free_address(), key=bytes(32), timeout=0.5)


def exits(comm):
    if comm.rank == 1:
        sys.exit(0)
    return comm.rank


def on_a_cluster(fn, n):
    with hocket.Cluster(n) as cluster:
        return cluster.run(fn)


@pytest.mark.parametrize("way", [hocket.spawn, hocket.run_threads, on_a_cluster])
def test_a_rank_that_exits_does_not_end_its_caller(way):
    with pytest.raises(RuntimeError, match="rank.* ended before its function had returned: SystemExit: 0"):
        way(exits, 2)
