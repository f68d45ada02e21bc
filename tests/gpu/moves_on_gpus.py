"""Ranks of pretended hosts whose arrays lie in GPUs' memory, without NCCL: what UCX or MPI carries.

Arguments: `cupy`, or `fake` for tests/fake_cuda; then the parts to run. The environment gives the
launcher (`hocket run`, or an mpirun) and the number of hosts to pretend (HOCKET_TEST_HOSTS).
tests/python/gpus/test_ucx_gpus.py and test_mpi_gpus.py run it on fake GPUs, tests/gpu/test_ucx.py
and test_mpi.py on real ones.
"""

import faulthandler
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np

RANK = next(int(os.environ[name]) for name in ("HOCKET_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
            if name in os.environ)
os.environ["HOCKET_HOST"] = f"{RANK % int(os.environ['HOCKET_TEST_HOSTS'])}/"

import hocket  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python" / "support"))


class Fake:
    """Arrays in the memory of fake GPUs."""

    def __init__(self, rank):
        from fake_gpu import Array, Driver

        self.driver, self.kind = Driver(), Array
        self.driver.use(rank % 2)

    def array(self, values):
        return self.kind(self.driver, values)

    def host(self, array):
        self.driver.synchronize(1)
        return array.host

    def later(self, array, values):
        """Fills the array on the stream, once the returned is called."""
        return self.driver.fill_later(array.address, np.ascontiguousarray(values), 1)


class CuPy:
    def __init__(self, rank):
        import cupy

        cupy.cuda.Device(rank % cupy.cuda.runtime.getDeviceCount()).use()
        self.cupy = cupy

    def array(self, values):
        return self.cupy.asarray(values)

    def host(self, array):
        return self.cupy.asnumpy(array)

    def later(self, array, values):
        source = self.cupy.asarray(values)
        spin = self.cupy.ones((2000, 2000))
        for _ in range(20):
            spin = spin @ spin * 1e-4
        array[...] = source
        return lambda: None


def values(rank, count, dtype="float32", seed=0):
    return (np.arange(count) * 7 + 131 * rank + seed).astype(dtype)


def check(gpu, array, expected, what):
    got = gpu.host(array).reshape(-1)
    assert np.array_equal(got, np.asarray(expected).reshape(-1)), (what, comm.rank)


def movement(gpu):
    n, rank = comm.size, comm.rank
    for count in (1, 1000, 70_001, 1 << 20):
        for dtype in ("float32", "uint8", "complex128"):
            if count == 1 << 20 and dtype != "float32":
                continue
            parts = [values(r, count, dtype) for r in range(n)]
            for root in {0, n - 1}:
                x = gpu.array(parts[rank])
                comm.broadcast(x, root=root)
                check(gpu, x, parts[root], ("broadcast", count, dtype, root))
                out = gpu.array(np.zeros((n, count), dtype)) if rank == root else None
                comm.gather(gpu.array(parts[rank]), out=out, root=root)
                if rank == root:
                    check(gpu, out, parts, ("gather", count, dtype, root))
                own = gpu.array(np.zeros(count, dtype))
                comm.scatter(gpu.array(np.stack(parts)) if rank == root else None, out=own, root=root)
                check(gpu, own, parts[rank], ("scatter", count, dtype, root))
            out = gpu.array(np.zeros((n, count), dtype))
            comm.all_gather(gpu.array(parts[rank]), out=out)
            check(gpu, out, parts, ("all_gather", count, dtype))
            table = [[values(r, count, dtype, seed=17 * c) for c in range(n)] for r in range(n)]
            x, out = gpu.array(np.stack(table[rank])), gpu.array(np.zeros((n, count), dtype))
            comm.all_to_all(x, out=out)
            check(gpu, out, [table[r][rank] for r in range(n)], ("all_to_all", count, dtype))
            comm.all_to_all(x, out=x)
            check(gpu, x, [table[r][rank] for r in range(n)], ("in place", count, dtype))
    counts = [3 + 50_000 * r for r in range(n)]
    parts = [values(r, counts[r]) for r in range(n)]
    out = gpu.array(np.zeros(sum(counts), "float32"))
    comm.all_gather_v(gpu.array(parts[rank]), out=out, counts=counts)
    check(gpu, out, np.concatenate(parts), "all_gather_v")
    sent = [values(rank, 1000 * ((rank + c) % 3), seed=c) for c in range(n)]
    came = [values(r, 1000 * ((r + rank) % 3), seed=rank) for r in range(n)]
    out = gpu.array(np.zeros(sum(map(len, came)), "float32"))
    comm.all_to_all_v(gpu.array(np.concatenate(sent)), [len(s) for s in sent], out=out,
                      out_counts=[len(c) for c in came])
    check(gpu, out, np.concatenate(came), "all_to_all_v")


def order(gpu):
    """Calls run after earlier work on the stream, and after each other; reductions, too."""
    n, rank, count = comm.size, comm.rank, 300_000
    x = gpu.array(np.zeros(count, "float32"))
    gate = gpu.later(x, values(rank, count))
    out = gpu.array(np.zeros((n, count), "float32"))
    opener = threading.Thread(target=lambda: (time.sleep(0.2), gate()))
    opener.start()
    works = [comm.all_gather_async(x, out=out), comm.all_reduce_async(x),
             comm.broadcast_async(x, root=1)]
    opener.join()
    for work in works:
        work.synchronize(timeout=60)
    check(gpu, out, [values(r, count) for r in range(n)], "all_gather")
    total = np.sum([values(r, count).astype("float64") for r in range(n)], axis=0)
    assert np.allclose(gpu.host(x), total)
    right, left = (rank + 1) % n, (rank - 1) % n
    for late in range(n):  # messages behind what the host carries, and a rank is late for
        x, came = gpu.array(values(rank, count)), gpu.array(np.zeros(count, "float32"))
        comm.barrier()
        if rank == late:
            time.sleep(0.3)
        work = comm.all_reduce_async(x)
        comm.send_recv(x, right, out=came, source=left)
        work.synchronize(timeout=60)
        assert np.allclose(gpu.host(x), total) and np.allclose(gpu.host(came), total), late


def messages(gpu):
    n, rank, right, left = comm.size, comm.rank, (comm.rank + 1) % comm.size, comm.rank - 1
    left %= n
    for count in (1, 5000, 1 << 18, 1 << 22):
        x, out = gpu.array(values(rank, count)), gpu.array(np.zeros(count, "float32"))
        comm.send_recv(x, right, out=out, source=left)
        check(gpu, out, values(left, count), ("send_recv", count))
        comm.send_recv(x, right, out=x, source=left)
        check(gpu, x, values(left, count), ("send_recv in place", count))
    if rank < 2:
        for i in range(50):
            x = gpu.array(values(rank, 100 + i, seed=i))
            if rank == 0:
                comm.send(x, 1)
            else:
                comm.recv(x, 0)
                check(gpu, x, values(0, 100 + i, seed=i), ("in order", i))
    table = [[gpu.array(values(rank, 1 << 16, seed=c)) for c in range(n)] for _ in (0, 1)]
    comm.exchange([(table[0][c], c) for c in range(n) if c != rank],
                  [(table[1][c], c) for c in range(n) if c != rank])
    for c in range(n):
        if c != rank:
            check(gpu, table[1][c], values(c, 1 << 16, seed=rank), ("exchange", c))


def groups(gpu):
    """Each group has separate messages; a rank alone needs none."""
    n, rank, count = comm.size, comm.rank, 1 << 18
    part = comm.split(color=rank % 2)
    members = range(rank % 2, n, 2)
    for root in range(2):
        x = gpu.array(values(rank, count))
        y = gpu.array(values(rank, count, seed=5))
        part.broadcast(x, root=root % part.size)
        comm.broadcast(y, root=root)
        check(gpu, x, values(members[root % part.size], count), ("in a group", root))
        check(gpu, y, values(root, count, seed=5), ("beside it", root))
    out = gpu.array(np.zeros((part.size, count), "float32"))
    part.all_gather(gpu.array(values(rank, count)), out=out)
    check(gpu, out, [values(r, count) for r in members], "all_gather in a group")


def capture(gpu):
    """A graph would go on without the host."""
    x = gpu.array(values(comm.rank, 1 << 20))
    stream = gpu.cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        try:
            comm.broadcast(x, root=0)
            raise AssertionError("no error")
        except hocket.InvalidArgument as error:
            assert "cannot be captured" in str(error), error
        stream.end_capture()
    comm.broadcast(x, root=0)
    check(gpu, x, values(0, 1 << 20), "after")


def stopped(gpu):
    """A rank stops in the middle of a call, for longer than the others wait. After they have
    given up, it leaves the abandoned arrays alone when it goes on.
    """
    n, rank, count = comm.size, comm.rank, 1 << 20
    x, out = gpu.array(values(rank, count)), gpu.array(np.zeros((n, count), "float32"))
    comm.all_gather(x, out=out)
    comm.barrier()
    comm.deadline = 1
    if rank == 1:
        subprocess.Popen(["sh", "-c", f"sleep 0.2; kill -STOP {os.getpid()}; sleep 2; "
                          f"kill -CONT {os.getpid()}"])
    try:
        while True:
            comm.all_gather(x, out=out)
    except hocket.DeadlineExceeded:
        before = gpu.host(out).copy()
    time.sleep(3)
    assert np.array_equal(gpu.host(out), before)
    again = comm.rebuild(timeout=60)
    again.deadline = 60
    again.all_gather(gpu.array(values(again.rank, count, seed=3)), out=out)
    check(gpu, out, [values(r, count, seed=3) for r in range(n)], "after")
    again.barrier()


def beside_capture(gpu):
    """While another stream of this thread is captured."""
    x = gpu.array(values(comm.rank, 1 << 20))
    table = gpu.array(np.zeros((comm.size, 1 << 18), "float32"))
    ending = comm.duplicate()
    ending.broadcast(x, root=0)
    ending.all_to_all(table, out=table)
    comm.barrier()
    with gpu.driver.captures() as stream:
        try:
            comm.broadcast(x, root=0, stream=stream)
            raise AssertionError("no error")
        except hocket.InvalidArgument as error:
            assert "cannot be captured" in str(error), error
        comm.broadcast(x, root=0)
        comm.all_to_all(table, out=table)
        comm.send_recv(x, (comm.rank + 1) % comm.size, out=x, source=(comm.rank - 1) % comm.size)
        comm.barrier()
        ending.close()
    check(gpu, x, values(0, 1 << 20), "after")


def memory(gpu):
    """If a rank's GPU has no room for the memory of UCX or MPI, the host carries the call on all
    ranks.
    """
    again = comm.duplicate()
    again.deadline = 30
    x = gpu.array(values(comm.rank, 1 << 20))
    if comm.rank == 1:
        os.environ["FAKE_CUDA_LARGEST"] = str(16 << 20)
    again.broadcast(x, root=0)
    check(gpu, x, values(0, 1 << 20), "by the host")
    again.barrier()


def other_gpu(gpu):
    """A communicator on another GPU of each rank's: the host carries, on all ranks at once."""
    x = gpu.array(values(comm.rank, 1 << 20))
    comm.broadcast(x, root=0)
    check(gpu, x, values(0, 1 << 20), "on the first")
    again = comm.duplicate()
    again.deadline = 30
    gpu.driver.use(1 - comm.rank % 2)
    y = gpu.array(values(comm.rank, 1 << 20))
    again.broadcast(y, root=again.size - 1)
    check(gpu, y, values(again.size - 1, 1 << 20), "on the other")
    gpu.driver.use(comm.rank % 2)
    comm.broadcast(x, root=again.size - 1)
    again.barrier()


def cut(gpu):
    """The GPUs' connections break while their ranks live on. Ranks that go on make new ones."""
    import chaos_hosts

    x = gpu.array(values(comm.rank, 1 << 20))
    comm.broadcast(x, root=0)
    check(gpu, x, values(0, 1 << 20), "before")
    comm.barrier()
    if comm.rank == 0:
        made = set(chaos_hosts.sockets_of(os.getpid())) - sockets_before
        assert any([chaos_hosts.cut(os.getpid(), fd) for fd in made])
    try:
        while True:
            comm.broadcast(x, root=0)
    except hocket.Error as error:
        assert "UCX" in str(error), error
    again = comm.rebuild(timeout=60)
    again.deadline = 30
    y = gpu.array(values(again.rank, 1 << 20))
    again.broadcast(y, root=0)
    check(gpu, y, values(0, 1 << 20), "after")
    again.barrier()


def length(gpu):
    """A message that is longer than its receiver wants."""
    bytes_sent, bytes_wanted = 4 << 20, 3 << 20
    try:
        if comm.rank == 0:
            comm.send(gpu.array(values(0, bytes_sent // 4)), 1)
        elif comm.rank == 1:
            comm.recv(gpu.array(values(0, bytes_wanted // 4)), 0)
        comm.barrier()
        raise AssertionError("no error")
    except hocket.Mismatch as error:
        # The ranks' records met before the GPUs' messages did.
        assert f"recv float32[{bytes_wanted // 4}]" in str(error), error
        assert f"send float32[{bytes_sent // 4}]" in str(error), error
    except hocket.DeviceError as error:
        told = [f"rank 0 has sent {bytes_sent} bytes to this rank's GPU, which wanted {bytes_wanted}",
                f"this rank has sent {bytes_sent} bytes to rank 1's GPU, which wanted {bytes_wanted}"]
        assert any(text in str(error) for text in told), error


def mismatch(gpu):
    """A call of one rank that differs from the others'; afterwards they go on in a new communicator."""
    x, out = gpu.array(values(comm.rank, 1 << 20)), gpu.array(np.zeros((comm.size, 1 << 20), "float32"))
    try:
        if comm.rank == 1:
            comm.all_gather(x, out=out)
        else:
            comm.broadcast(x, root=0)
        comm.barrier()
        raise AssertionError("no error")
    except hocket.Mismatch as error:
        assert "all_gather" in str(error) and "broadcast" in str(error), error
    again = comm.rebuild(timeout=60)
    again.all_gather(gpu.array(values(again.rank, 1 << 20)), out=out)
    check(gpu, out, [values(r, 1 << 20) for r in range(again.size)], "after")


def death(gpu):
    """Rank 1 is killed while the others wait for it; afterwards they go on without it."""
    global comm
    x = gpu.array(values(comm.rank, 1 << 20))
    comm.broadcast(x, root=0)
    check(gpu, x, values(0, 1 << 20), "before")
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        comm.broadcast_async(x, root=1).synchronize(timeout=60)
        comm.barrier()
        raise AssertionError("no error")
    except hocket.PeerDied as error:
        assert error.rank == 1, error
    comm = again = comm.rebuild(timeout=60)
    y = gpu.array(values(again.rank, 1 << 20))
    again.broadcast(y, root=0)
    check(gpu, y, values(0, 1 << 20), "after")


def deadline(gpu):
    """Messages to a rank that never takes part end in their deadline, and it hears of that."""
    x = gpu.array(values(comm.rank, 1 << 20))
    comm.broadcast(x, root=0)
    check(gpu, x, values(0, 1 << 20), "before")
    if comm.rank == 0:
        try:
            comm.recv_async(x, 1, timeout=1).synchronize(timeout=60)
            raise AssertionError("no error")
        except hocket.DeadlineExceeded as error:
            assert "messages between GPUs" in str(error) and "rank 1" in str(error), error
    while True:
        try:
            comm.barrier(timeout=60)
        except hocket.DeadlineExceeded:
            break
    before = gpu.host(x).copy()
    again = comm.rebuild(timeout=60)
    again.broadcast(x, root=again.size - 1)
    gpu.host(x)
    del before


if __name__ == "__main__":
    if "HOCKET_TEST_WATCHDOG" in os.environ:  # seconds; says then where it stands
        faulthandler.dump_traceback_later(float(os.environ["HOCKET_TEST_WATCHDOG"]))
    comm = hocket.init(timeout=60)
    gpu = {"fake": Fake, "cupy": CuPy}[sys.argv[1]](comm.rank)
    if "cut" in sys.argv:
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "faults"))
        import chaos_hosts

        comm.all_to_all(np.ones((comm.size, 1 << 18)))  # the host's own connections come first
        comm.barrier()
        sockets_before = set(chaos_hosts.sockets_of(os.getpid()))
    comm.barrier(stream=0) if sys.argv[1] == "cupy" else comm.all_reduce(gpu.array(np.ones(3)))
    for part in sys.argv[2:]:
        globals()[part](gpu)
        os.write(1, f"{part} done\n".encode())  # in one write, as other ranks write too
    if "death" in sys.argv:
        comm.barrier()  # an mpirun may end the others when the first one ends
        os._exit(0)
