"""hocket.futures: the behaviours of concurrent.futures, with ranks as workers that may die."""

import asyncio
import concurrent.futures
import functools
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import as_completed

import farm_tasks as tasks
import numpy as np
import pytest
from helpers import ROOT
from processes import run_job, with_package

import hocket
from hocket._command import find_command
from hocket.futures import BrokenExecutor, Executor


@pytest.fixture(scope="module")
def pool():
    with Executor(2) as made:
        yield made


def await_ready(pool, n):
    """Wait until there are `n` workers, and each is ready for tasks."""
    until = time.monotonic() + 200
    while not len(pool.ranks) == len(pool.pids) == n:
        assert time.monotonic() < until, (pool.ranks, pool.pids)
        time.sleep(0.01)


# --- As in concurrent.futures ---------------------------------------------------------------------


def test_submit_passes_arguments_and_returns_a_future(pool):
    future = pool.submit(tasks.add, 1, 2, c=3)
    assert isinstance(future, concurrent.futures.Future) and isinstance(pool, concurrent.futures.Executor)
    assert future.result() == 6 and future.done() and future.exception() is None
    assert pool.submit(tasks.pid).result() != os.getpid()
    assert pool.submit(functools.partial(tasks.add, 1), b=5).result() == 6
    assert pool.submit(str.upper, "a").result() == "A"


def test_workers_stay_alive(pool):
    first = set(pool.map(tasks.sleep, [0.05] * 2, ["a", "b"])), {f.result() for f in [pool.submit(tasks.pid) for _ in range(50)]}
    later = {f.result() for f in [pool.submit(tasks.pid) for _ in range(50)]}
    assert first[0] == {"a", "b"} and len(first[1] | later) <= 2


@pytest.mark.parametrize("chunksize", [1, 3, 100])
def test_map_keeps_the_order(pool, chunksize):
    assert list(pool.map(tasks.square, range(17), chunksize=chunksize)) == [x * x for x in range(17)]
    assert list(pool.map(tasks.add, [1, 2, 3], [10, 20], chunksize=chunksize)) == [11, 22]
    assert list(pool.map(tasks.square, [], chunksize=chunksize)) == []


def test_map_orders_what_ends_in_another_order(pool):
    seconds = [0.2, 0.0, 0.1, 0.0]
    assert list(pool.map(tasks.sleep, seconds, range(4))) == [0, 1, 2, 3]


def test_map_raises_where_the_failed_call_is(pool):
    results = pool.map(tasks.deep, [0])
    with pytest.raises(KeyError, match="at the bottom"):
        next(results)
    results = pool.map(int, ["1", "2", "x", "4"])
    assert [next(results), next(results)] == [1, 2]
    with pytest.raises(ValueError, match="'x'"):
        next(results)


def test_map_with_a_timeout(pool):
    results = pool.map(tasks.sleep, [0.0, 1.0], ["first", "second"], timeout=0.4)
    assert next(results) == "first"
    with pytest.raises(TimeoutError):
        next(results)


def test_map_that_is_left_cancels_the_rest(pool, tmp_path):
    results = pool.map(tasks.wait_for, [str(tmp_path / "go")] * 2 + [str(tmp_path / "never")] * 20)
    results.close()  # before the first: nothing was asked for
    tasks.touch(tmp_path / "go")
    tasks.touch(tmp_path / "never")
    assert pool.submit(tasks.square, 3).result() == 9


def test_exceptions_come_with_the_worker_s_traceback(pool):
    with pytest.raises(KeyError, match="at the bottom") as caught:
        pool.submit(tasks.deep, 3).result()
    cause = str(caught.value.__cause__)
    assert cause.count("in deep") == 4 and 'raise KeyError("at the bottom")' in cause
    assert "rank" in cause


def test_exceptions_that_cannot_be_pickled_are_told(pool):
    with pytest.raises(RuntimeError, match="Odd: 1 and 2") as caught:
        pool.submit(tasks.raise_odd).result()
    assert "in raise_odd" in str(caught.value.__cause__)


def test_exit_is_an_outcome_like_others(pool):
    assert isinstance(pool.submit(tasks.leave, 3).exception(), SystemExit)
    assert pool.submit(tasks.square, 2).result() == 4


def test_results_and_arguments_that_cannot_be_pickled(pool):
    with pytest.raises(TypeError, match="cannot pickle '_thread.lock'"):
        pool.submit(tasks.unpicklable).result()
    future = pool.submit(tasks.square, threading.Lock())
    with pytest.raises(TypeError, match="cannot pickle '_thread.lock'"):
        future.result()
    assert pool.submit(tasks.square, 2).result() == 4


def test_pending_tasks_can_be_cancelled_and_running_ones_cannot(pool, tmp_path):
    running = [pool.submit(tasks.wait_for, str(tmp_path / "go")) for _ in range(2)]
    while not all(future.running() for future in running):
        time.sleep(0.01)
    pending = [pool.submit(tasks.square, i) for i in range(3)]
    assert not any(future.cancel() for future in running) and all(f.running() for f in running)
    assert pending[1].cancel() and pending[1].cancelled()
    tasks.touch(tmp_path / "go")
    assert [pending[0].result(), pending[2].result()] == [0, 4]
    with pytest.raises(concurrent.futures.CancelledError):
        pending[1].result()
    done, rest = concurrent.futures.wait(running + pending, timeout=20)
    assert len(done) == 5 and not rest


def test_callbacks_may_hand_out_tasks(pool):
    ended = threading.Event()
    results = []

    def again(future):
        results.append(future.result())
        if len(results) == 5:
            ended.set()
        else:
            pool.submit(tasks.add, future.result(), 1).add_done_callback(again)

    pool.submit(tasks.add, 0, 1).add_done_callback(again)
    assert ended.wait(20) and results == [1, 2, 3, 4, 5]


def test_as_completed_and_asyncio(pool, tmp_path):
    last = pool.submit(tasks.wait_for, str(tmp_path / "go"))
    others = [pool.submit(tasks.square, i) for i in range(2)]
    ended = as_completed([last, *others])
    assert {next(ended), next(ended)} == set(others)
    tasks.touch(tmp_path / "go")
    assert next(ended) is last

    async def main():
        loop = asyncio.get_running_loop()
        return await asyncio.gather(*(loop.run_in_executor(pool, tasks.square, i) for i in range(5)))

    assert asyncio.run(main()) == [0, 1, 4, 9, 16]


def test_threads_share_it(pool):
    def run(i):
        results[i] = list(pool.map(tasks.add, range(50), [i] * 50))

    results = {}
    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {i: [i + k for k in range(50)] for i in range(8)}


def test_thousands_of_tasks(pool):
    futures = [pool.submit(tasks.square, i) for i in range(5000)]
    assert [future.result() for future in futures] == [i * i for i in range(5000)]
    assert sum(pool.map(tasks.square, range(5000))) == sum(i * i for i in range(5000))


def test_uneven_tasks_are_balanced(pool, tmp_path):
    """The long task keeps one worker, and the other does all the rest before it ends."""
    long = pool.submit(tasks.wait_for, str(tmp_path / "go"))
    pids = {future.result() for future in [pool.submit(tasks.pid) for _ in range(100)]}
    assert not long.done() and len(pids) == 1
    tasks.touch(tmp_path / "go")
    assert long.result() not in pids


# --- Objects --------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 100, 5000, 3_000_000])
def test_arrays(pool, count):
    x = np.arange(count, dtype="float32")
    assert np.array_equal(pool.submit(tasks.double, x).result(), x * 2)
    total, contiguous, found = pool.submit(tasks.stamp, x).result()
    assert np.array_equal(found, x + 1) and contiguous and total == found.sum()
    found += 1
    assert np.array_equal(x, np.arange(count, dtype="float32"))


def test_arrays_of_any_layout_and_depth(pool):
    found = pool.submit(tasks.columns, 300).result()
    assert found.flags.f_contiguous and np.array_equal(found, tasks.columns(300))
    deep = {"a": [np.arange(9000), (np.ones((70, 70))[::2], "text")], "b": b"x" * 100_000}
    back = pool.submit(dict, deep).result()
    assert np.array_equal(back["a"][0], np.arange(9000)) and back["a"][1][0].shape == (35, 70)
    assert back["b"] == deep["b"] and back["a"][1][1] == "text"
    many = [np.full(1000, i) for i in range(600)]
    assert [int(x[0]) for x in pool.submit(list, many).result()] == list(range(600))
    results = list(pool.map(tasks.double, many[:50], chunksize=7))
    assert [int(x[-1]) for x in results] == [2 * i for i in range(50)]


def test_arrays_are_not_pickled():
    """The pickle of a long array is as long as that of a short one."""
    from hocket.futures._wire import TASK, Packer

    messages = Packer(same_program=True).pack(TASK, (tasks.double, (np.zeros(10**6),), {}))
    assert len(messages) == 2 and len(messages[0]) < 500 and messages[1].nbytes == 8 * 10**6


def test_functions_of_main_and_closures(pool):
    pytest.importorskip("cloudpickle")
    offset = 7
    assert list(pool.map(lambda x: x + offset, range(5))) == [7, 8, 9, 10, 11]
    assert pool.submit(lambda: [offset] * 2).result() == [7, 7]
    for i in range(150):  # more than a worker keeps
        assert list(pool.map(lambda x: x + i, range(3))) == [i, i + 1, i + 2]


# --- Begin and end --------------------------------------------------------------------------------


def test_initializers_run_once_a_worker():
    with Executor(2, initializer=tasks.keep, initargs=("kept",)) as pool:
        assert {f.result() for f in [pool.submit(tasks.kept_value) for _ in range(20)]} == {"kept"}


def test_a_failed_initializer_breaks_the_executor():
    with Executor(2, initializer=tasks.fail_to_begin, initargs=("no licence",)) as pool:
        future = None
        with pytest.raises(concurrent.futures.BrokenExecutor, match="initializer.*no licence") as caught:
            future = pool.submit(tasks.square, 2)
            future.result()
        assert isinstance(caught.value, BrokenExecutor)
        with pytest.raises(BrokenExecutor):
            for _ in range(1000):
                pool.submit(tasks.square, 2)
                time.sleep(0.01)


def test_after_shutdown_nothing_can_be_handed_out():
    pool = Executor(1)
    future = pool.submit(tasks.sleep, 0.3, "done")
    pool.shutdown(wait=False)
    with pytest.raises(RuntimeError, match="cannot schedule new futures after shutdown"):
        pool.submit(tasks.square, 1)
    assert future.result() == "done"
    pool.shutdown()
    pool.shutdown()


def test_shutdown_cancels_what_has_not_begun(tmp_path):
    pool = Executor(1)
    running = pool.submit(tasks.wait_for, str(tmp_path / "go"))
    while not running.running():  # the worker may not be ready yet
        time.sleep(0.01)
    pending = [pool.submit(tasks.square, i) for i in range(5)]
    pool.shutdown(wait=False, cancel_futures=True)
    assert all(future.cancelled() for future in pending)
    tasks.touch(tmp_path / "go")
    assert running.result()
    pool.shutdown()


def test_one_that_is_dropped_does_its_tasks_and_ends_its_processes():
    pool = Executor(1)
    process = pool.submit(tasks.pid).result()
    future = pool.submit(tasks.sleep, 0.2, "done")
    del pool
    assert future.result() == "done"
    until = time.monotonic() + 20
    while os.path.exists(f"/proc/{process}"):
        assert time.monotonic() < until
        time.sleep(0.01)


def script(program, timeout=50, **options):
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT / "tests" / "python" / "support",
        capture_output=True,
        text=True,
        timeout=timeout,
        **options,
    )


def test_the_end_of_the_program_waits_for_tasks():
    done = script("""
import farm_tasks as tasks
from hocket.futures import Executor
pool = Executor(2)
for i in range(4):
    pool.submit(tasks.sleep, 0.2, i).add_done_callback(lambda f: print(f.result(), flush=True))
""")
    assert sorted(done.stdout.split()) == ["0", "1", "2", "3"] and done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_a_script_s_own_functions_and_output():
    pytest.importorskip("cloudpickle")
    done = script("""
from hocket.futures import Executor
def f(x):
    print("at", x)
    return x + 1
with Executor(1) as pool:
    results = list(pool.map(f, [1, 2]))
print(results)
""")
    assert sorted(done.stdout.splitlines()) == ["[1] at 1", "[1] at 2", "[2, 3]"]


def test_idle_workers_are_no_deadlock_and_no_reason_for_a_warning():
    environment = {k: v for k, v in os.environ.items() if k != "HOCKET_DEADLOCK_AFTER"}
    done = script("""
import time
import farm_tasks as tasks
from hocket.futures import Executor
with Executor(2) as pool:
    for i in range(2):
        print(list(pool.map(tasks.square, range(3))))
        time.sleep(2)
""", env={**environment, "HOCKET_WARN": "0.5"})
    assert done.stdout == "[0, 1, 4]\n" * 2 and done.stderr == ""


def test_ctrl_c_stops_tasks_that_run(tmp_path):
    program = """
import os, sys, time
import farm_tasks as tasks
from hocket.futures import Executor
try:
    with Executor(2) as pool:
        print(*[pool.submit(tasks.pid).result() for _ in range(9)], flush=True)
        futures = [pool.submit(tasks.stay, sys.argv[1]) for _ in range(9)]
        while len(os.listdir(sys.argv[1])) < 2:
            time.sleep(0.01)
        print("waiting", flush=True)
        futures[0].result()
except KeyboardInterrupt:
    print([type(f.exception()).__name__ if not f.cancelled() else "cancelled" for f in futures])
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program, tmp_path],
        cwd=ROOT / "tests" / "python" / "support",
        stdout=subprocess.PIPE,
        text=True,
    )
    pids = set(process.stdout.readline().split())
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert out == str(["KeyboardInterrupt"] * 2 + ["cancelled"] * 7) + "\n" and process.returncode == 0
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)


# --- Workers that die -----------------------------------------------------------------------------


def test_who_dies_is_named_and_the_others_go_on():
    with Executor(3, replace=False) as pool:
        victim = pool.submit(tasks.die)
        with pytest.raises(hocket.PeerDied, match=r"worker rank \d \(pid \d+\) was killed by SIGKILL while "
                                                  "it ran die; Executor.*retries=1") as caught:
            victim.result()
        assert caught.value.rank not in pool.ranks and len(pool.ranks) == 2
        assert caught.value.signal == signal.SIGKILL and caught.value.pid > 0
        assert list(pool.map(tasks.square, range(100))) == [x * x for x in range(100)]
        with pytest.raises(hocket.PeerDied, match="exited with code 7 while it ran exit_at_once"):
            pool.submit(tasks.exit_at_once, 7).result()
        assert pool.submit(tasks.square, 4).result() == 16
        with pytest.raises(hocket.PeerDied):
            pool.submit(tasks.die).result()
        with pytest.raises(BrokenExecutor, match="no worker is left.*SIGKILL"):
            pool.submit(tasks.square, 4).result()
        assert pool.ranks == []


def test_tasks_that_wait_fail_with_the_last_worker():
    with Executor(1, replace=False) as pool:
        first = pool.submit(tasks.die)
        others = [pool.submit(tasks.square, i) for i in range(3)]
        assert isinstance(first.exception(), hocket.PeerDied)
        assert all(isinstance(future.exception(), BrokenExecutor) for future in others)


def test_a_task_is_run_again_where_that_is_asked(tmp_path):
    with Executor(3, retries=1, replace=False) as pool:
        assert pool.submit(tasks.die_once, str(tmp_path / "one")).result() == "lived"
        results = pool.map(tasks.die_once, [str(tmp_path / "two")] * 3)
        assert set(results) == {"lived"} and len(pool.ranks) == 1
    with Executor(3, retries=1, replace=False) as pool:
        with pytest.raises(hocket.PeerDied, match="while it ran die for the 2. time"):
            pool.submit(tasks.die).result()
        assert len(pool.ranks) == 1


@pytest.mark.parametrize("seed", range(20))
def test_a_worker_is_killed_at_random(seed):
    """Each result is right or names who died; with retries all are right."""
    chance = random.Random(seed)
    with Executor(3, retries=seed % 2, replace=False) as pool:
        pids = set()
        while len(pids) < 3:
            pids |= {f.result() for f in [pool.submit(tasks.pid) for _ in range(30)]}
        arrays = chance.random() < 0.5
        x = np.arange(20_000)
        futures = [pool.submit(tasks.double, x + i if arrays else i) for i in range(200)]
        time.sleep(chance.random() * 0.02)
        os.kill(chance.choice(sorted(pids)), signal.SIGKILL)
        concurrent.futures.wait(futures)
        # All tasks may have ended before the kill: it then meets one of these.
        later = [pool.submit(tasks.square, i) for i in range(20)]
        lost = [f for f in futures + later if f.exception() is not None]
        assert len(lost) <= (seed + 1) % 2
        assert all(isinstance(f.exception(), hocket.PeerDied) for f in lost)
        for i, future in enumerate(futures):
            if future not in lost:
                assert np.array_equal(future.result(), 2 * (x + i) if arrays else 2 * i)
        assert all(f in lost or f.result() == i * i for i, f in enumerate(later))
        await_ready(pool, 2)  # an idle worker's death may be seen after all tasks have ended


def test_a_worker_that_is_stopped_holds_up_its_own_task_alone():
    with Executor(2) as pool:
        pids = set()
        while len(pids) < 2:
            pids |= {f.result() for f in [pool.submit(tasks.pid) for _ in range(30)]}
        stopped = min(pids)
        os.kill(stopped, signal.SIGSTOP)
        futures = [pool.submit(tasks.square, i) for i in range(50)]
        for _ in zip(range(49), as_completed(futures, timeout=40)):
            pass
        os.kill(stopped, signal.SIGCONT)
        assert [future.result() for future in futures] == [i * i for i in range(50)]


def test_the_others_of_a_batch_are_not_lost(tmp_path):
    """Short tasks travel in batches. The one that kills the worker is lost, and none beside it."""
    with Executor(1) as pool:
        for _ in range(3):
            assert list(pool.map(tasks.square, range(500))) == [x * x for x in range(500)]
            before = [pool.submit(tasks.die_at, i, 130) for i in range(200)]
            lost = [i for i, future in enumerate(before) if future.exception() is not None]
            assert lost == [130] and "while it ran die_at" in str(before[130].exception())
            assert all(future.result() == i for i, future in enumerate(before) if i != 130)


def test_a_long_task_holds_up_no_other_of_its_batch(tmp_path):
    go = str(tmp_path / "go")
    with Executor(2) as pool:
        assert list(pool.map(tasks.wait_at, range(400), [""] * 400)) == list(range(400))  # all are short
        futures = [pool.submit(tasks.wait_at, i, go if i == 7 else "") for i in range(300)]
        done, left = concurrent.futures.wait(futures[:7] + futures[8:], timeout=20)
        assert not left and not futures[7].done()
        tasks.touch(go)
        assert [future.result() for future in futures] == list(range(300))


def test_long_results_of_short_tasks():
    with Executor(2) as pool:
        for _ in range(2):
            found = list(pool.map(tasks.text_of, range(3000, 3300)))
            assert found == ["x" * (i * 40) if i % 50 == 0 else i for i in range(3000, 3300)]


# --- Newcomers ------------------------------------------------------------------------------------


@pytest.mark.watchdog(300)  # each kill costs the start of a process
def test_workers_killed_at_random_are_replaced():
    """15 kills in a farm of 4: all tasks come out right, and the workers are whole at the end."""
    chance = random.Random(41)
    with Executor(4, retries=15) as pool:
        x = np.arange(5_000)
        for _ in range(15):
            futures = [pool.submit(tasks.double, x + i if i % 3 else i) for i in range(60)]
            time.sleep(chance.random() * 0.01)
            while not (alive := list(pool.pids.values())):  # all are being replaced
                time.sleep(0.01)
            victim = chance.choice(alive)
            os.kill(victim, signal.SIGKILL)
            for i, future in enumerate(futures):
                assert np.array_equal(future.result(200), 2 * (x + i) if i % 3 else 2 * i)
            until = time.monotonic() + 200
            while victim in pool.pids.values():
                assert time.monotonic() < until
                time.sleep(0.005)
        await_ready(pool, 4)
        assert pool.ranks == [1, 2, 3, 4] and len(set(pool.pids.values())) == 4
        assert list(pool.map(tasks.square, range(100))) == [i * i for i in range(100)]


def test_the_only_worker_is_replaced_and_tasks_wait_for_it():
    with Executor(1, initializer=tasks.keep, initargs=("kept",)) as pool:
        first = pool.submit(tasks.die)
        others = [pool.submit(tasks.kept_value) for _ in range(3)]
        assert isinstance(first.exception(), hocket.PeerDied)
        assert [future.result() for future in others] == ["kept"] * 3
        await_ready(pool, 1)


def test_newcomers_that_die_as_they_start_are_not_replaced_for_ever(tmp_path):
    with Executor(1, initializer=tasks.die_second, initargs=(str(tmp_path / "first"),)) as pool:
        with pytest.raises(hocket.PeerDied):
            pool.submit(tasks.die).result()
        with pytest.raises(BrokenExecutor, match="in a row|no worker is left"):
            pool.submit(tasks.square, 3).result()


def test_shutdown_while_a_newcomer_is_being_started():
    for wait in (True, False):
        pool = Executor(2)
        with pytest.raises(hocket.PeerDied):
            pool.submit(tasks.die).result()
        pool.shutdown(wait=wait)
        pool.shutdown()


# --- Refused --------------------------------------------------------------------------------------


def test_a_task_cannot_use_the_executor_that_runs_it(pool):
    with pytest.raises(hocket.InvalidArgument, match="a task cannot use it"):
        pool.submit(tasks.nest, pool).result()
    with pytest.raises(hocket.InvalidArgument):
        pickle.dumps(pool)
    assert pool.submit(tasks.executor_within).result() == 25  # but one of its own


@pytest.mark.parametrize(
    "arguments, text",
    [
        (("4",), "n is '4'"),
        ((0,), "n is 0, expected at least 1"),
        ((2000,), "n is 2000"),
        ((1, 5), None),
    ],
)
def test_wrong_arguments(arguments, text):
    if text is None:
        with pytest.raises(TypeError):
            Executor(*arguments)
        return
    with pytest.raises(hocket.InvalidArgument, match=text):
        Executor(*arguments)


def test_other_wrong_arguments(pool):
    with pytest.raises(hocket.InvalidArgument, match="retries is -1"):
        Executor(1, retries=-1)
    with pytest.raises(hocket.InvalidArgument, match="replace is 'yes'"):
        Executor(1, replace="yes")
    with pytest.raises(hocket.InvalidArgument, match="initializer is an int"):
        Executor(1, initializer=5)
    with pytest.raises(hocket.InvalidArgument, match="fn is an int, which cannot be called"):
        pool.submit(5)
    with pytest.raises(hocket.InvalidArgument, match="chunksize is 0"):
        pool.map(tasks.square, [1], chunksize=0)
    with pytest.raises(hocket.InvalidArgument, match="one rank.*hocket run -n 4"):
        Executor(hocket.init())
    with pytest.raises(hocket.InvalidArgument, match="this one hands out"):
        pool.serve()


# --- Under hocket run -----------------------------------------------------------------------------

JOB = """
import os, signal, sys
sys.path.insert(0, {support!r})
import farm_tasks as tasks
import hocket
from hocket.futures import Executor

def own(x):
    return x + 0.5

comm = hocket.init()
"""


def job(tmp_path, n, body, before=()):
    program = tmp_path / "program.py"
    program.write_text(JOB.format(support=str(ROOT / "tests" / "python" / "support")) + body)
    return run_job(n, program, before=before)


def test_ranks_of_a_job_are_workers(tmp_path):
    done = job(tmp_path, 3, """
with Executor(comm, initializer=tasks.keep, initargs=(comm.rank,)) as pool:
    if pool is not None:
        assert pool.ranks == [1, 2] and comm.rank == 0
        print(list(pool.map(own, range(4))), pool.submit(own, 1).result())
        print({f.result() for f in [pool.submit(tasks.kept_value) for _ in range(50)]} <= {1, 2})
print(comm.rank, comm.all_gather_object(comm.rank))
with Executor(comm) as pool:  # and again
    if pool is not None:
        print(sum(pool.map(own, range(10))))
""")
    lines = sorted(done.stdout.splitlines())
    assert done.returncode == 0, done.stdout
    assert lines == sorted([
        "[0] [0.5, 1.5, 2.5, 3.5] 1.5", "[0] True", "[0] 0 [0, 1, 2]", "[1] 1 [0, 1, 2]",
        "[2] 2 [0, 1, 2]", "[0] 50.0",
    ])


def test_without_with_workers_serve(tmp_path):
    done = job(tmp_path, 2, """
pool = Executor(comm)
if comm.rank == 0:
    print(pool.submit(own, 2).result())
    pool.shutdown()
else:
    for call in (lambda: pool.submit(own, 1), lambda: pool.map(own, [1])):
        try:
            call()
        except hocket.InvalidArgument as error:
            print("rank 0 alone hands out tasks" in str(error))
    pool.serve()
    print("served")
""")
    assert sorted(done.stdout.splitlines()) == ["[0] 2.5", "[1] True", "[1] True", "[1] served"], done.stdout


def test_a_job_s_rank_that_dies_is_named(tmp_path):
    done = job(tmp_path, 4, """
with Executor(comm, retries=1) as pool:
    if pool is not None:
        try:
            pool.submit(tasks.die).result()
        except hocket.PeerDied as error:
            print(type(error).__name__, str(error).split(") ", 1)[1], error.signal, len(pool.ranks))
        print(list(pool.map(own, range(3))))
""", before=["--keep-going"])
    assert "[0] PeerDied was killed by signal 9 (SIGKILL) while it ran die for the 2. time 9 1" in done.stdout, done.stdout
    assert "[0] [0.5, 1.5, 2.5]" in done.stdout


def test_workers_hear_of_the_end_of_rank_0(tmp_path):
    done = job(tmp_path, 3, """
try:
    with Executor(comm) as pool:
        if pool is not None:
            os.kill(os.getpid(), signal.SIGKILL)
except hocket.PeerDied as error:
    print("told", error.rank)
""", before=["--keep-going"])
    assert "[1] told 0" in done.stdout and "[2] told 0" in done.stdout, done.stdout


def test_a_job_takes_in_newcomers_that_wait_at_its_door(tmp_path):
    """Two workers of a job die; spares take their places, one after the other."""
    program = tmp_path / "program.py"
    program.write_text(JOB.format(support=str(ROOT / "tests" / "python" / "support")) + """
import time
with Executor(comm, replace=True) as pool:
    if pool is not None:
        assert pool.ranks == [1, 2]
        for _ in range(2):
            try:
                pool.submit(tasks.die).result()
            except hocket.PeerDied as error:
                print("lost", error.rank)
            assert list(pool.map(own, range(100))) == [i + 0.5 for i in range(100)]
        until = time.monotonic() + 40
        while len(pool.ranks) < 2 or len(pool.pids) < 2:
            assert time.monotonic() < until, pool.ranks
            time.sleep(0.01)
        print(pool.ranks, list(pool.map(own, range(3))))
print("ended", comm.rank, "of", comm.size)
""")
    door = f"farm-{os.getpid()}"
    environment = with_package(HOCKET_DOOR=door)
    spares = [
        subprocess.Popen(
            [find_command(), "run", "--join", door, "-n", "1", "--", sys.executable, str(program)],
            env={k: v for k, v in environment.items() if k != "HOCKET_DOOR"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(2)
    ]
    done = run_job(3, program, before=["--keep-going"], env={"HOCKET_DOOR": door})
    told = [spare.communicate(timeout=50)[0] for spare in spares]
    assert "[0] [1, 2] [0.5, 1.5, 2.5]" in done.stdout and "[0] ended 0 of 3" in done.stdout, (done.stdout, told)
    assert sorted(line for line in done.stdout.splitlines() if "lost" in line) == ["[0] lost 1", "[0] lost 2"]
    assert [spare.returncode for spare in spares] == [0, 0], told
    assert all("ended 1 of 2" in text for text in told), told
