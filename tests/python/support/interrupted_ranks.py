"""A rank that is interrupted in one wait after another: `python interrupted_ranks.py RANK SIZE ADDRESS
KIND...`. It says "ready" before each wait and then what came of it. The last rank comes to none of the
calls, so that the others wait."""

import asyncio
import faulthandler
import signal
import sys
import time

import numpy as np

import hocket

KEY = bytes(range(32))
LONG = 1 << 22  # elements of a message that no rank receives


def in_pool(comm):
    with hocket.DevicePool(2) as pool:
        pool.run(lambda worker: worker.communicator.recv(np.empty(3), 1 - worker.index))


def in_threads(comm):
    hocket.run_threads(lambda c: c.recv(np.empty(3), 1 - c.rank), 2)


def stored(comm):
    with_server = hocket.StoreServer("unix:hocket-interrupted-" + str(id(comm)))
    try:
        hocket.connect_store(with_server.address, timeout=60).get("nothing")
    finally:
        with_server.close()


def wait_any(comm):
    works = [comm.recv_async(np.empty(3), comm.size - 1)]
    works[hocket.wait_any(works)].wait()


# These are ready once the event loop handles Ctrl-C.
READY_IN_LOOP = ("await", "receives")


async def awaited(comm):
    work = comm.all_reduce_async(np.ones(3))
    say("ready")
    await work


async def received(comm):
    say("ready")
    async for _ in comm.receives(3, source=comm.size - 1):
        pass


WAITS = {
    "wait any": wait_any,
    "await": lambda c: asyncio.run(awaited(c)),
    "receives": lambda c: asyncio.run(received(c)),
    "barrier": lambda c: c.barrier(),
    "all_reduce": lambda c: c.all_reduce(np.ones(3)),
    "long all_reduce": lambda c: c.all_reduce(np.ones(LONG)),
    "prepared": lambda c: c.prepare_all_reduce(np.ones(3))(),
    "wait": lambda c: c.all_reduce_async(np.ones(3)).wait(),
    "wait with a timeout": lambda c: c.all_reduce_async(np.ones(3)).wait(timeout=60),
    "synchronize": lambda c: c.barrier_async().synchronize(),
    "behind another": lambda c: (c.barrier_async(), c.barrier()),
    "recv": lambda c: c.recv(np.empty(3), c.size - 1),
    "recv from any": lambda c: c.recv(np.empty(3)),
    "recv_async": lambda c: c.recv_async(np.empty(3), c.size - 1).wait(),
    "send": lambda c: c.send(np.ones(LONG), c.size - 1),
    "exchange": lambda c: c.exchange([], [(np.empty(3), c.size - 1)]),
    "objects": lambda c: c.all_gather_object({"a": 1}),
    "broadcast_object": lambda c: c.broadcast_object(None, root=c.size - 1),
    "duplicate": lambda c: c.duplicate(),
    "rebuild": lambda c: c.rebuild(),
    "symmetric": lambda c: c.symmetric.empty(3),
    "init": lambda c: hocket.init(
        rank=0, size=2, address=f"unix:hocket-never-{c.name}-{c.rank}-{time.monotonic_ns()}", timeout=60
    ),
    "init without a store": lambda c: hocket.init(
        rank=1, size=2, address="127.0.0.1:9", key=KEY, timeout=60
    ),
    "store": stored,
    "pool": in_pool,
    "threads": in_threads,
}


def say(word):
    print(word, flush=True)


def main():
    faulthandler.register(signal.SIGUSR1)
    rank, size = int(sys.argv[1]), int(sys.argv[2])
    world = hocket.init(rank=rank, size=size, address=sys.argv[3], key=KEY, timeout=50)
    for kind in sys.argv[4:]:
        comm = world.duplicate()
        try:
            try:
                if rank == size - 1 or kind not in READY_IN_LOOP:
                    say("ready")
                if rank == size - 1:
                    while True:  # short sleeps: a signal just before a sleep does not end it
                        time.sleep(0.01)
                else:
                    WAITS[kind](comm)
                say("nothing came")
            except KeyboardInterrupt:
                say("KeyboardInterrupt")
            except BaseException as error:
                say(f"{type(error).__name__}: {error}")
                time.sleep(1)  # this rank's own signal may still come
        except KeyboardInterrupt:
            pass
        comm = None
        world.barrier()


main()
