"""Threads that use the same objects at the same time. In a Python without a GIL they may meet at
any point. A Python with a GIL runs these tests, too. The test of speed is run by hand:
docs/notes/wheel.md.
"""

import array
import ctypes
import sys
import sysconfig
import threading

import numpy as np
import pytest

import hocket

THREADS = 4


def together(*bodies):
    """Runs each body in a separate thread, all from the same moment on; raises the error of one."""
    start = threading.Barrier(len(bodies))
    failures = []

    def run(body):
        start.wait(30)
        try:
            body()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(body,), daemon=True) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(50)
        assert not thread.is_alive(), "a thread does not come to its end"
    if failures:
        raise failures[0]


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has a GIL")
def test_a_python_without_a_gil_stays_so():
    assert not sys._is_gil_enabled(), "an import has switched the GIL on"


def test_threads_wait_for_one_work():
    def rank(comm):
        for step in range(50):
            x = np.full(1000, comm.rank + step + 1.0)
            work = comm.all_reduce_async(x)
            results = []

            def look(work=work):
                while not work.test():
                    repr(work)
                assert work.done and work.exception is None and work.received is None

            together(look, look, lambda w=work: results.append(w.wait()),
                     lambda w=work: results.append(w.synchronize()))
            assert all(result is x for result in results) and len(results) == 2
            assert (x == 2 * step + 3).all()

    hocket.run_threads(rank, 2)


def test_threads_that_look_at_a_communicator_while_it_closes():
    def rank(comm):
        together(comm.close, *[lambda: [repr(comm) for _ in range(100)]] * (THREADS - 1))
        assert "closed" in repr(comm)

    for _ in range(20):
        hocket.run_threads(rank, 2)


def arrays_of_many_types(value):
    """More types than are cached, so that entries are dropped while other threads read them."""
    made = [array.array("d", [value]), bytearray(np.float64(value).tobytes()), np.array([value])]
    for bytes_ in range(20):
        kind = type(f"Doubles{bytes_}", (ctypes.c_double * 1,), {})
        made.append(kind(value))
    return made


def test_threads_with_arrays_of_many_types():
    def rank(comm):
        for _ in range(30):
            for x in arrays_of_many_types(comm.rank + 1.0):
                comm.all_reduce(x, op="max" if not isinstance(x, bytearray) else "bor")
                if not isinstance(x, bytearray):
                    assert x[0] == THREADS

    hocket.run_threads(rank, THREADS)


def test_threads_with_one_prepared_call_each_from_one_thread_s_objects():
    inputs = [np.full(64, float(rank + 1)) for rank in range(THREADS)]
    outputs = [np.zeros(64) for _ in range(THREADS)]

    def rank(comm):
        call = comm.prepare_all_reduce(inputs[comm.rank], outputs[comm.rank])
        for _ in range(200):
            call()

    hocket.run_threads(rank, THREADS)
    assert all((out == THREADS * (THREADS + 1) / 2).all() for out in outputs)


def test_an_object_is_sent_while_another_thread_changes_it():
    # The value that arrives is one of its states; freed memory is not read.
    numbers, names = list(range(50)), {str(i): i for i in range(50)}
    ended = threading.Event()

    def change():
        while not ended.is_set():
            numbers.extend(range(5000))
            del numbers[50:]
            names["7"] = -names["7"]

    def rank(comm):
        for _ in range(300):
            some, named = comm.broadcast_object([numbers, names] if comm.rank == 0 else None)
            assert some[:50] == list(range(50)) and sorted(named) == sorted(names)

    def send():
        try:
            hocket.run_threads(rank, 2)
        finally:
            ended.set()

    together(change, send)
