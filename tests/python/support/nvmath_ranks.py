"""Processes with the runtime of the face of nvmath.distributed. A process has one runtime."""

import hocket
from hocket.compat import nvmath_distributed as nvd


def with_runtime(comm, job, *args):
    nvd.initialize("cpu", nvd.HocketProcessGroup(comm), ["shm"])
    try:
        return job(nvd.get_context().process_group, *args)
    finally:
        nvd.finalize()


def on_processes(n, job, *args):
    """`job(process_group, *args)` on `n` processes."""
    return hocket.spawn(with_runtime, n, job, *args)
