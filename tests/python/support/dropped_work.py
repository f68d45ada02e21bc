"""One thread drops a call in progress. Meanwhile the main thread, where signals arrive, waits in
another call of the same communicator, and needs the GIL to look for signals.
"""

import sys
import threading
import time

import numpy as np

import hocket


def wait_in_vain(comm):
    try:
        comm.recv(np.empty(1), 0, tag=1)
    except hocket.Aborted:
        return
    raise AssertionError("nothing was given up")


def drop(works, in_call):
    in_call.wait()
    until = time.monotonic() + 0.3  # holds the GIL, which the main thread wants meanwhile
    while time.monotonic() < until:
        pass
    works.clear()


sys.setswitchinterval(100)
# A world of one: a message to itself that never comes.
world = hocket.init(rank=0, size=1)
for _ in range(3):
    comm = world.duplicate()
    works = [comm.recv_async(np.empty(3), 0, tag=2)]
    in_call = threading.Event()
    timer = threading.Timer(0.05, in_call.set)
    dropper = threading.Thread(target=drop, args=(works, in_call))
    dropper.start()
    timer.start()
    wait_in_vain(comm)
    dropper.join()
print("as it should")
