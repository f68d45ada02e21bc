"""Calls on pretended GPUs for which no thread waits, and the end of their processes."""

import subprocess
import sys
from pathlib import Path

import pytest
from gpu_ranks import FAKE, PRELUDE, environment, run, run_ranks

SUPPORT = Path(__file__).parents[1] / "support"
pytestmark = pytest.mark.skipif(not FAKE.exists(), reason="this build has no fake driver")


# --- Without waiting ------------------------------------------------------------------------------


def test_a_loop_that_waits_for_nothing_goes_on():
    ends = run_ranks("""
comm, driver = start(rank)
x = Array(driver, np.arange(100.0) + rank)
for i in range(1500):
    comm.all_reduce(x, op="max")
    comm.broadcast(x, root=1)
driver.synchronize()
assert np.array_equal(x.host, np.arange(100.0) + 1), x.host
""")
    assert ends == [(0, ""), (0, "")], ends


def test_messages_that_nobody_waits_for_go_on():
    ends = run_ranks("""
comm, driver = start(rank)
x, y = Array(driver, np.full(100, rank)), Array(driver, np.zeros(100, int))
for i in range(700):
    comm.send_recv(x, 1 - rank, y, 1 - rank)
driver.synchronize()
assert np.array_equal(y.host, np.full(100, 1 - rank)), y.host
""")
    assert ends == [(0, ""), (0, "")], ends


def test_another_thread_may_allocate_and_free_meanwhile():
    """The driver does that when no stream waits, and blocks new work on streams until then."""
    ends = run_ranks("""
import ctypes, threading
comm, driver = start(rank)
x, y = Array(driver, np.arange(100.0) + rank), Array(driver, np.zeros(100))
has_ended = threading.Event()
def churn():
    driver.use(rank)
    while not has_ended.is_set():
        at = ctypes.c_uint64()
        assert driver.cuMemAlloc(ctypes.byref(at), 4096) == 0
        assert driver.cuMemFree(at) == 0
thread = threading.Thread(target=churn)
thread.start()
try:
    for i in range(60):
        comm.all_reduce(x, op="max")
        comm.send_recv(x, 1 - rank, y, 1 - rank)
        comm.all_reduce_async(x, op="max").synchronize()
    driver.synchronize()
finally:
    has_ended.set()
    thread.join()
assert np.array_equal(x.host, np.arange(100.0) + 1), x.host
assert np.array_equal(y.host, x.host), y.host
""", FAKE_CUDA_STILL="1", HOCKET_DEADLINE="20")
    assert ends == [(0, ""), (0, "")], ends


def test_who_lets_go_of_a_communicator_does_not_wait_for_the_gpu():
    """Here a callback's thread holds the GIL. By then the stream waits for a call of another
    communicator, which needs the GIL, and the driver frees memory only when no stream waits.
    """
    ends = run_ranks("""
import threading
comm, driver = start(rank)
x, y = Array(driver, np.ones(100)), Array(driver, np.arange(100.0) + rank)
group = comm.duplicate()
called, may_end = threading.Event(), threading.Event()
def last_user(work):
    called.set()
    if threading.current_thread() is not threading.main_thread():  # as where it has ended before
        assert may_end.wait(20)
work = group.all_reduce_async(x, op="max")
work.add_done_callback(last_user)
assert called.wait(20)
del group, work
if rank == 1:
    time.sleep(0.3)
last = comm.all_reduce_async(y, op="max")
may_end.set()
last.synchronize()
assert np.array_equal(y.host, np.arange(100.0) + 1), y.host
""", FAKE_CUDA_STILL="1")
    assert ends == [(0, ""), (0, "")], ends


# With a queue as short as that, each call finds it full of what the program has put there.
FILLED = """
comm, driver = start(rank)
x, y = Array(driver, np.arange(100.0) + rank), Array(driver, np.zeros(100))
if rank == 1:
    time.sleep(0.3)
comm.CALL
for i in range(QUEUE - 8):
    driver.copy(y.address, x.address, 8, None)
comm.CALL
work = comm.all_reduce_async(x)
comm.CALL
work.synchronize(timeout=30)
driver.synchronize()
"""


@pytest.mark.parametrize("call", ["all_reduce(x)", "send_recv(x, 1 - rank, y, 1 - rank)",
                                  "symmetric.empty(5, memory='cuda')"])
def test_a_full_stream_keeps_nobody_from_carrying_calls(call):
    program = FILLED.replace("CALL", call).replace("QUEUE", "40")
    ends = run_ranks(program, FAKE_CUDA_QUEUE="40")
    assert ends == [(0, ""), (0, "")], ends


# --- The end of a process -------------------------------------------------------------------------

CHILDREN = """
import multiprocessing
def main(rank, call):
    comm, driver = start(rank)
    x, y = Array(driver, np.arange(40_000.0) + rank), Array(driver, np.zeros(20_000))
    kept.extend([x, y])
    if call == "reduce":
        for i in range(8):
            comm.reduce(x, root=0)
            comm.broadcast(x, root=0)
        comm.reduce(x, root=0)
    else:
        comm.scatter(x if rank == 0 else None, out=y, root=0)
        comm.gather(y, out=x if rank == 0 else None, root=0)
    if rank == 1:
        return
    driver.synchronize()
    if call == "reduce":
        assert np.array_equal(x.host, 512 * np.arange(40_000.0) + 256), x.host
    else:
        assert np.array_equal(x.host, np.arange(40_000.0)), x.host
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[2])
    ranks = [context.Process(target=main, args=(r, sys.argv[3])) for r in range(2)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
    codes = [process.exitcode for process in ranks]
    assert codes == [0, 0], codes
"""


@pytest.mark.parametrize("call", ["reduce", "scatter"])
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_of_multiprocessing_end_after_their_calls(tmp_path, method, call):
    program = tmp_path / "program.py"
    program.write_text(PRELUDE + CHILDREN)
    done = subprocess.run([sys.executable, program, SUPPORT, method, call], env=environment(),
                          capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")


# The outcome of each rank's last call, and how the other rank causes it.
DIES = """
comm, driver = start(rank)
x = Array(driver, np.ones(8))
comm.barrier()
if rank == 1:
    time.sleep(0.5)  # the other's call is under way
    os.kill(os.getpid(), signal.SIGKILL)
comm.all_reduce(x)
"""
DIFFERS = """
comm, driver = start(rank)
x = Array(driver, np.ones(8 - 4 * rank))
comm.all_reduce(x)
"""
REFUSES = """
comm, driver = start(rank)
x = Array(driver, np.ones(8))
try:
    comm.broadcast_async(x, root=1 if rank == 0 else 7)
except hocket.InvalidArgument:
    assert rank == 1
"""
SAID = "a call has failed"


def test_a_last_call_whose_peer_dies_ends_the_process_with_an_error():
    (code, said), (killed, _) = run_ranks(DIES)
    assert killed == -9 and code == 1, (code, said)
    assert SAID in said and "rank 1" in said and "killed by signal 9" in said, said


def test_last_calls_that_differ_end_both_with_an_error():
    for code, said in run_ranks(DIFFERS):
        assert code == 1 and SAID in said and "ranks called different things" in said, (code, said)


def test_a_refusal_that_nobody_asks_for_ends_the_process_with_an_error():
    (code, said), (refused, _) = run_ranks(REFUSES)
    assert code == 1 and SAID in said and "expected a rank" in said, (code, said)
    assert refused == 0


def test_the_code_of_a_program_that_has_failed_itself_stays():
    (code, said), _ = run_ranks(DIES + "\nsys.exit(3)")
    assert code == 3 and SAID in said, (code, said)


@pytest.mark.parametrize("how", [
    "comm.close()",
    "with comm: pass",
    "group.close()",
])
def test_close_raises_what_nobody_has_been_told(how):
    program = DIES.replace("comm, driver = start(rank)\n",
                           "world, driver = start(rank)\ncomm = group = world.duplicate()\n"
                           "first = Array(driver, np.ones(2))\ncomm.all_reduce(first)\n")
    (code, said), _ = run_ranks(program + f"""
try:
    {how}
except hocket.PeerDied as error:
    assert error.rank == 1, error
else:
    raise SystemExit("no error")
comm.close()  # once is enough
try:
    comm.barrier()
except hocket.InvalidArgument as error:
    assert "closed" in str(error), error
""")
    assert (code, said) == (0, ""), (code, said)


def test_what_has_been_raised_is_not_said_again():
    (code, said), _ = run_ranks(DIES + """
try:
    while True:
        comm.all_reduce(x)
except hocket.PeerDied:
    pass
""")
    assert (code, said) == (0, ""), (code, said)


def test_an_exception_in_a_block_is_not_replaced():
    (code, said), _ = run_ranks(DIES + """
try:
    with comm:
        raise KeyError("mine")
except KeyError:
    pass
""")
    assert code == 0 and "killed by signal 9" in said, (code, said)


def test_a_forgotten_communicator_says_what_became_of_its_call():
    (code, said), _ = run_ranks(DIES + "\nkept.clear()\ndel comm\n")
    assert code == 1 and SAID in said, (code, said)


def test_ranks_that_are_threads_raise_it():
    code, said = run("""
driver = Driver()
def body(comm):
    driver.use(comm.rank)
    first, x = Array(driver, np.ones(2)), Array(driver, np.ones(8 - 4 * comm.rank))
    driver.kept += [first, x]
    comm.all_reduce(first)
    driver.synchronize()
    comm.barrier()
    comm.all_reduce(x)
try:
    hocket.run_threads(body, 2)
except hocket.Mismatch as error:
    assert "different things" in str(error), error
else:
    raise SystemExit("no error")
""")
    assert code == 0 and SAID not in said, (code, said)


def test_a_child_of_multiprocessing_ends_with_an_error(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PRELUDE + """
import multiprocessing
def main(rank, how):
    comm, driver = start(rank)
    x = Array(driver, np.ones(8 - 4 * rank))
    kept.append(x)
    comm.all_reduce(x)
    if how == "raises":
        raise KeyError("mine")
    if how == "exits":
        sys.exit()
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    for how in ("returns", "raises", "exits"):
        os.environ["MEET"] += how
        ranks = [context.Process(target=main, args=(r, how)) for r in range(2)]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()
        assert [process.exitcode for process in ranks] == [1, 1], how
""")
    done = subprocess.run([sys.executable, program, SUPPORT], env=environment(),
                          capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(SAID) == 6, done.stderr
    assert done.stderr.count("KeyError: 'mine'") == 2, done.stderr


def test_a_child_that_inherits_a_communicator_leaves_it_alone():
    """Contract 16: it waits for nothing, says nothing, and writes to no segment."""
    ends = run_ranks("""
import multiprocessing
comm, driver = start(rank)
x = Array(driver, np.arange(8.0) + rank)
if rank == 1:
    time.sleep(0.5)  # the other's call is under way meanwhile
comm.all_reduce(x)
def child():
    pass
if rank == 0:
    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join()
    assert process.exitcode == 0, process.exitcode
driver.synchronize()
assert np.array_equal(x.host, 2 * np.arange(8.0) + 1), x.host
""")
    assert ends == [(0, ""), (0, "")], ends
