"""Three ranks. Rank 1 ends in some way; rank 0 is in a call that needs it, and prints its error.

Arguments: how rank 1 ends, what rank 0 calls, when rank 2 leaves in good order, and hosts to pretend.
"""

import contextlib
import os
import signal
import sys
import threading
import time

import numpy as np

import hocket

end, call, third, hosts = sys.argv[1:5]
if hosts == "each":
    os.environ["HOCKET_HOST"] = f"{os.environ['HOCKET_RANK']}/"
IN_CALL = 0.15  # seconds after which rank 0 waits in its call


def multi_line():
    raise RuntimeError("no fuel\nat all")


def raise_in_block(comm):
    with comm:
        raise RuntimeError("no fuel")


def exit_from_a_block(comm, status):
    with comm:
        sys.exit(status)


def return_after_a_groups_block(comm):
    """The program catches its exception, and goes on without the group."""
    with contextlib.suppress(RuntimeError), group:
        raise RuntimeError("no fuel")


def raise_after_close(comm):
    comm.close()
    raise RuntimeError("no fuel")


def raise_in_a_thread(_=None):
    reader = threading.Thread(target=raise_no_fuel, name="reader")
    reader.start()
    reader.join()


def exit_after(comm):
    """As scripts do that print what went wrong by themselves."""
    with comm:
        try:
            raise RuntimeError("no fuel")
        except RuntimeError:
            sys.exit(1)


def raise_no_fuel(_=None):
    raise RuntimeError("no fuel")


def raise_with(text):
    raise RuntimeError(text)


def end_rank(comm):
    ends = {
        "raise": raise_no_fuel,
        "raise in lines": lambda _: multi_line(),
        "raise in a block": raise_in_block,
        "raise after close": raise_after_close,
        "raise in a thread": raise_in_a_thread,
        "raise bytes that are no text": lambda _: raise_with("no \udcff.dat"),
        "raise a word without end": lambda _: raise_with("L" * 3000),
        "exit 1 after an exception": exit_after,
        "interrupt": lambda _: (_ for _ in ()).throw(KeyboardInterrupt),
        "exit 0": lambda _: sys.exit(0),
        "return after a group's block": return_after_a_groups_block,
        "exit 3": lambda _: sys.exit(3),
        "exit with words": lambda _: sys.exit("no fuel"),
        "exit 3 from a block": lambda comm: exit_from_a_block(comm, 3),
        "_exit 4": lambda _: os._exit(4),
        "kill": lambda _: os.kill(os.getpid(), signal.SIGKILL),
        "return": lambda _: None,
    }
    ends[end](comm)


def calls(comm):
    x = np.zeros(3)
    return {
        "recv": lambda: comm.recv(x, hocket.ANY_SOURCE),
        "recv from 1": lambda: comm.recv(x, 1),
        "recv with any tag": lambda: comm.recv(x, hocket.ANY_SOURCE, tag=hocket.ANY_TAG),
        "recv_async": lambda: comm.recv_async(x, hocket.ANY_SOURCE).wait(),
        "wait_any": lambda: wait_any([comm.recv_async(x, hocket.ANY_SOURCE)]),
        "probe": lambda: comm.probe(hocket.ANY_SOURCE),
        "probe_now": lambda: poll(lambda: comm.probe_now(hocket.ANY_SOURCE)),
        "probe_now of each": lambda: poll(lambda: comm.probe_now(1) or comm.probe_now(2)),
        "recv_object": lambda: comm.recv_object(hocket.ANY_SOURCE),
        "send_recv": lambda: comm.send_recv(x, 2, np.zeros(3), hocket.ANY_SOURCE),
        "exchange": lambda: comm.exchange([], [(x, hocket.ANY_SOURCE)]),
        "sleep, then recv": lambda: (time.sleep(0.5), comm.recv(x, hocket.ANY_SOURCE)),
        "all_reduce": lambda: comm.all_reduce(x),
        "barrier_async": lambda: comm.barrier_async().wait(),
        "broadcast from 1": lambda: comm.broadcast(x, root=1),
    }


def wait_any(works):
    works[hocket.wait_any(works)].wait()


def poll(look):
    while look() is None:
        time.sleep(0.005)


def stand(comm):
    try:
        calls(comm)[call]()
        print("went on")
    except hocket.Error as error:
        print(f"{type(error).__name__} of {getattr(error, 'rank', None)}: {error}")
    finally:
        with open(os.environ["LAST"], "a") as last:  # as a program writes a last checkpoint
            last.write("finally\n")


def main():
    global group
    comm = hocket.init(deadline=15)
    group = comm.duplicate() if "group" in end else None
    comm.barrier()
    if comm.rank == 0:
        stand(comm)
    elif comm.rank == 1:
        time.sleep(IN_CALL)
        end_rank(comm)
    elif third == "before":
        return
    elif third == "after":
        with contextlib.suppress(hocket.Error):  # the end of rank 1
            comm.recv(np.zeros(1), 1, tag=9)
    else:
        with contextlib.suppress(hocket.Error):
            comm.recv(np.zeros(1), 0, tag=9)


main()
