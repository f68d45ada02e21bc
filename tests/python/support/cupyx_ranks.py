"""Jobs of `cupyx.distributed` processes for tests; with CuPy's stand-in, or on NumPy alone."""

import multiprocessing
import traceback
from contextlib import closing

import numpy as np
from processes import free_port

from hocket.compat.cupyx_distributed import NCCLBackend

WATCHDOG = 50


def _child(pipe, fn, n, rank, port, args):
    with closing(pipe):
        try:
            pipe.send((True, fn(NCCLBackend(n, rank, port=port), *args)))
        except BaseException:
            pipe.send((False, traceback.format_exc()))


def ranks(n, fn, *args):
    """Returns the results of `fn(backend, *args)` on `n` ranks, which are forked processes."""
    port = free_port()
    context = multiprocessing.get_context("fork")
    children = []
    for rank in range(n):
        mine, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_child, args=(theirs, fn, n, rank, port, args))
        process.start()
        theirs.close()
        children.append((process, mine))
    try:
        results = []
        for rank, (_, pipe) in enumerate(children):
            assert pipe.poll(WATCHDOG), f"watchdog: rank {rank} does not end"
            results.append(pipe.recv())
        for rank, (ok, result) in enumerate(results):
            assert ok, f"rank {rank}:\n{result}"
        return [result for _, result in results]
    finally:
        for process, _ in children:
            process.kill()
            process.join()


def raised(fn, *args):
    """The error that a call ends by, as text: its class's names, then its message."""
    try:
        fn(*args)
    except Exception as error:
        return " ".join(c.__name__ for c in type(error).__mro__) + ": " + str(error)
    return "nothing"


def same(a, b):
    """Returns true if two arrays agree in dtype, shape and bytes."""
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b)
