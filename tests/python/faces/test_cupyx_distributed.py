"""The face of cupyx.distributed on dense arrays."""

import shutil
import subprocess
import sys
import time
import types

import numpy as np
import pytest
from cupyx_ranks import raised, ranks, same
from helpers import DTYPES, ROOT, values
from processes import free_port, outputs_of, start, with_package

from hocket.compat import cupyx_distributed as face

OPS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
COUNT = 7


def folded(n, shape, dtype, op):
    total = values(0, shape, dtype)
    for rank in range(1, n):
        total = OPS[op](total, values(rank, shape, dtype)).astype(dtype)
    return total


def expect(got, wanted, what):
    assert same(got, np.asarray(wanted)), f"{what}: {got} is not {wanted}"


def all_calls(comm, n):
    """Every call, dtype, op and root, checked in the rank."""
    rank = comm.rank
    for dtype in DTYPES:
        x = values(rank, COUNT, dtype)
        table = values(rank, (n, COUNT), dtype)
        for op in OPS if dtype.kind != "c" else ["sum"]:
            what = f"{dtype} {op}"
            out = np.zeros_like(x)
            comm.all_reduce(x, out, op)
            expect(out, folded(n, COUNT, dtype, op), f"all_reduce {what}")
            share = np.zeros_like(x)
            comm.reduce_scatter(table, share, COUNT, op)
            expect(share, folded(n, (n, COUNT), dtype, op)[rank], f"reduce_scatter {what}")
            for root in range(n):
                out = np.zeros_like(x) if rank == root else None
                comm.reduce(x, out, root, op)
                if rank == root:
                    expect(out, folded(n, COUNT, dtype, op), f"reduce {what}")
        gathered = np.stack([values(r, COUNT, dtype) for r in range(n)])
        out = np.zeros((n, COUNT), dtype)
        comm.all_gather(x, out, COUNT)
        expect(out, gathered, f"all_gather {dtype}")
        out = np.zeros((n, COUNT), dtype)
        comm.all_to_all(table, out)
        parts = [values(r, (n, COUNT), dtype)[rank] for r in range(n)]
        expect(out, np.stack(parts), f"all_to_all {dtype}")
        for root in range(n):
            y = x.copy()
            comm.broadcast(y, root)
            expect(y, values(root, COUNT, dtype), f"broadcast {dtype}")
            out = np.zeros((n, COUNT), dtype) if rank == root else None
            comm.gather(x, out, root)
            if rank == root:
                expect(out, gathered, f"gather {dtype}")
            share = np.zeros_like(x)
            comm.scatter(table if rank == root else None, share, root)
            expect(share, values(root, (n, COUNT), dtype)[rank], f"scatter {dtype}")
        if n > 1:
            following, previous = (rank + 1) % n, (rank - 1) % n
            got = np.zeros_like(x)
            if rank == 0:
                comm.send(x, following)
                comm.recv(got, previous)
            else:
                comm.recv(got, previous)
                comm.send(x, following)
            expect(got, values(previous, COUNT, dtype), f"recv {dtype}")
            peer = rank ^ 1
            if peer < n:
                comm.send_recv(x, got, peer)
                expect(got, values(peer, COUNT, dtype), f"send_recv {dtype}")
        got = np.zeros_like(x)
        comm.send_recv(x, got, rank)
        expect(got, x, "send_recv with itself")
        comm.barrier()
    return True


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_every_call_dtype_op_and_root(n):
    assert ranks(n, all_calls, n) == [True] * n


def returns(comm):
    x, table = np.zeros(3), np.zeros((2, 3))
    results = [
        comm.all_reduce(x, x.copy()), comm.reduce(x, x.copy()), comm.broadcast(x),
        comm.reduce_scatter(table, x, 3), comm.all_gather(x, table, 3),
        comm.scatter(table, x), comm.gather(x, table), comm.all_to_all(table, table.copy()),
        comm.send_recv(x, x.copy(), 1 - comm.rank), comm.barrier(),
    ]
    return results + [comm.send(x, 1) if comm.rank == 0 else comm.recv(x, 0)]


def test_every_call_returns_none():
    assert ranks(2, returns) == [[None] * 11] * 2


def counted(comm):
    """`count` counts; the arrays may hold more, as in CuPy's own tests."""
    x = np.arange(20.0) + 100 * comm.rank
    out = np.full(12, -1.0)
    comm.all_gather(x.reshape(2, 10), out, 5)
    share = np.full((2, 3), -1.0)
    comm.reduce_scatter(x, share, 4)
    return out.tolist(), share.ravel().tolist()


def test_count_says_how_much_of_the_arrays_is_used():
    for rank, (gathered, share) in enumerate(ranks(2, counted)):
        assert gathered == [0, 1, 2, 3, 4, 100, 101, 102, 103, 104, -1, -1]
        assert share == [100 + 2 * (4 * rank + i) for i in range(4)] + [-1, -1]


class Tensor:
    """Differs from NumPy's arrays like PyTorch's tensors: `size` is a method, a dtype has no
    kind.
    """

    def __init__(self, array):
        self.array, self.shape = array, array.shape
        self.dtype = types.SimpleNamespace(is_complex=array.dtype.kind == "c")

    def size(self):
        return self.shape

    def is_contiguous(self):
        return self.array.flags.c_contiguous

    def reshape(self, *shape):
        return Tensor(self.array.reshape(*shape))

    def __getitem__(self, index):
        return Tensor(self.array[index])

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def other_arrays(comm, make):
    """Calls that look at their arrays more closely, on others than NumPy's and CuPy's."""
    x, out, share = np.arange(10.0) + 100 * comm.rank, np.full(12, -1.0), np.full(6, -1.0)
    comm.all_gather(make(x), make(out), 5)
    comm.reduce_scatter(make(x), make(share), 4)
    comm.all_reduce(make(x), make(x), "max")
    texts = [
        raised(comm.all_gather, make(x), make(out), 7),
        raised(comm.all_reduce, make(x), make(out)),
    ]
    return out.tolist(), share.tolist(), x.tolist(), texts


@pytest.mark.parametrize("make", [Tensor, memoryview])
def test_other_arrays_than_numpys_and_cupys(make):
    for rank, (gathered, share, x, texts) in enumerate(ranks(2, other_arrays, make)):
        assert gathered == [0, 1, 2, 3, 4, 100, 101, 102, 103, 104, -1, -1]
        assert share == [100 + 2 * (4 * rank + i) for i in range(4)] + [-1, -1]
        assert x == [100 + i for i in range(10)]
        assert "out_array has 12 elements, expected at least 14" in texts[0]
        for text in texts:
            assert "RuntimeError" in text and "ValueError" in text, text


def test_other_complex_arrays():
    def complex_max(comm):
        x = np.ones(3, "complex64")
        return raised(comm.all_reduce, Tensor(x), Tensor(x), "max")

    for text in ranks(2, complex_max):
        assert text.startswith("InvalidArgument") and "on complex numbers" in text, text


def fortran(comm):
    """Right, or an error on every rank; never the wrong data."""
    x = np.asfortranarray(values(comm.rank, (2, 3)))
    out = np.zeros((2, 3), order="F")
    comm.all_reduce(x, out)
    right = same(out, folded(2, (2, 3), "float64", "sum"))
    table = np.asfortranarray(values(comm.rank, (2, 3)))
    texts = [
        raised(comm.scatter, table, np.zeros(3), 0),
        raised(comm.gather, np.zeros(3), np.zeros((2, 3), order="F"), 0),
        raised(comm.all_to_all, table, np.zeros((2, 3))),
        raised(comm.all_reduce, x, np.zeros((2, 3))),
    ]
    comm.all_reduce(np.zeros(1), np.zeros(1))  # it goes on
    return right, texts


def test_fortran_order_is_right_or_refused():
    for rank, (right, texts) in enumerate(ranks(2, fortran)):
        assert right
        for text in texts[:1] + texts[1 + rank :]:  # a gather's parts may have gone already
            assert "RuntimeError" in text and "ValueError" in text, text


def refusals(comm):
    x, table = np.zeros(4), np.zeros((2, 4))
    strided = np.zeros(8)[::2]
    complex_ = np.zeros(4, "complex64")
    texts = {
        "op": raised(comm.all_reduce, x, x.copy(), "avg"),
        "root op": raised(comm.reduce, x, x.copy(), 0, "total"),
        "complex": raised(comm.all_reduce, complex_, complex_.copy(), "prod"),
        "strided": raised(comm.all_reduce, strided, x),
        "strided out": raised(comm.broadcast, strided),
        "scatter": raised(comm.scatter, np.zeros((3, 4)), x),
        "gather": raised(comm.gather, x, np.zeros((3, 4))),
        "all_to_all": raised(comm.all_to_all, np.zeros((4, 2)), table),
        "all_to_all out": raised(comm.all_to_all, table, x),
        "sizes": raised(comm.all_reduce, x, np.zeros(5)),
        "dtypes": raised(comm.all_reduce, x, np.zeros(4, "float32")),
        "gather out": raised(comm.gather, x, np.zeros((2, 3))),
        "count": raised(comm.all_gather, x, table, 5),
        "negative": raised(comm.all_gather, x, table, -1),
        "small out": raised(comm.reduce_scatter, table, np.zeros(3), 4),
        "objects": raised(comm.all_reduce, np.array([None, 1]), x),
        "root": raised(comm.broadcast, x, 2),
        "peer": raised(comm.send, x, 2),
        "no array": raised(comm.broadcast, None),
    }
    out = np.zeros(4)
    comm.all_reduce(np.full(4, 1.0 + comm.rank), out)
    assert out.tolist() == [3.0] * 4
    return texts


def test_bad_arguments_are_named_and_nobody_is_stranded():
    errors = {
        "op": ("RuntimeError", "op is 'avg'"),
        "root op": ("RuntimeError", "op is 'total'"),
        "complex": ("ValueError", "complex"),
        "strided": ("RuntimeError", "contiguous"),
        "strided out": ("RuntimeError", "contiguous"),
        "scatter": ("RuntimeError", "in_array needs 2 entries"),
        "gather": ("RuntimeError", "out_array needs 2 entries"),
        "all_to_all": ("RuntimeError", "in_array needs 2 entries"),
        "all_to_all out": ("RuntimeError", "out_array needs 2 entries"),
        "sizes": ("ValueError", "5"),
        "dtypes": ("ValueError", "float32"),
        "gather out": ("ValueError", "6"),
        "count": ("RuntimeError", "in_array has 4 elements, expected at least 5"),
        "negative": ("RuntimeError", "count is -1, expected at least 0"),
        "small out": ("RuntimeError", "out_array has 3 elements, expected at least 4"),
        "objects": ("TypeError", ""),
        "root": ("ValueError", "root"),
        "peer": ("ValueError", "2"),
        "no array": ("ValueError", "None"),
    }
    for rank, texts in enumerate(ranks(2, refusals)):
        if rank == 1:
            texts["gather out"] = "ValueError 6"  # its part may have gone already
        for case, (kind, words) in errors.items():
            assert kind in texts[case] and words in texts[case], (case, texts[case])


def one_is_wrong(comm):
    x = np.zeros(4)
    op = "nonsense" if comm.rank == 1 else "sum"
    text = raised(comm.all_reduce, x, x.copy(), op)
    comm.barrier()
    return text


def test_what_one_rank_gets_wrong_all_ranks_hear_of():
    texts = ranks(3, one_is_wrong)
    for rank, text in enumerate(texts):
        assert "RuntimeError" in text and "nonsense" in text, (rank, text)
    assert "rank 1" in texts[0]


def many_barriers(comm):
    for _ in range(100_000):
        comm.barrier()
    return comm.rank


def test_a_hundred_thousand_barriers():
    assert ranks(2, many_barriers) == [0, 1]


DEATH = """
import os, signal, sys, numpy as np
from cupyx.distributed import init_process_group
rank, port = int(sys.argv[1]), int(sys.argv[2])
comm = init_process_group(3, rank, port=port)
comm.barrier()
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    comm.all_reduce(np.zeros(4), np.zeros(4))
except ConnectionError as error:
    print(error)
"""


def run_jobs(program, n, port, names="cupyx.distributed"):
    return [start("-m", "hocket.compat", names, "--", "-c", program, rank, port) for rank in range(n)]


def test_who_died_is_said_to_the_others():
    outputs = outputs_of(run_jobs(DEATH, 3, free_port()))
    assert "rank 1" in outputs[0] and "rank 1" in outputs[2], outputs
    assert outputs[1] == ""


TWO_JOBS = """
import sys, time, numpy as np
from cupyx.distributed import init_process_group
rank, port = int(sys.argv[1]), int(sys.argv[2])
try:
    comm = init_process_group(2, rank, port=port)
except ConnectionError as error:
    print("refused:", error)
    sys.exit()
print("joined", flush=True)
time.sleep(15 if rank == 0 else 0)
x = np.full(1, rank + 1.0)
comm.all_reduce(x, x)
print(x[0])
"""


def test_a_second_job_on_the_port_is_refused(monkeypatch):
    monkeypatch.setenv("HOCKET_WARN", "0")  # the first job waits longer than usual
    port = free_port()
    first = run_jobs(TWO_JOBS, 2, port)
    for process in first:
        assert process.stdout.readline() == "joined\n"
    second = outputs_of(run_jobs(TWO_JOBS, 2, port))
    assert all(output.startswith("refused:") for output in second), second
    assert "another job" in second[0] and "taken" in second[1]
    assert outputs_of(first) == ["3.0\n"] * 2


def one_after_the_other(comm, port):
    rank = comm.rank
    first = face.NCCLBackend(2, rank, port=port)
    second = face.NCCLBackend(2, rank, port=port)  # while the first one stands
    x, y = np.full(1, rank + 1.0), np.full(1, rank + 5.0)
    second.all_reduce(y, y)
    first.all_reduce(x, x)
    if rank == 0:  # CuPy's stop does nothing elsewhere, so programs may leave it away there
        second.stop()
        first.stop()
        first.stop()
    third = face.init_process_group(2, rank, port=port)
    z = np.full(1, rank + 10.0)
    third.all_reduce(z, z)
    return x[0], y[0], z[0], rank == 1 or "closed" in raised(first.barrier)


def test_one_communicator_after_the_other_on_one_port():
    assert ranks(2, one_after_the_other, free_port()) == [(3.0, 11.0, 21.0, True)] * 2


def swapped(comm, port):
    first = face.NCCLBackend(2, comm.rank, port=port)
    first.barrier()
    first.stop()
    second = face.NCCLBackend(2, 1 - comm.rank, port=port)  # the same port, other ranks
    x = np.full(1, second.rank + 1.0)
    second.broadcast(x, 0)
    return second.rank, x[0]


def test_another_world_on_the_same_port():
    assert ranks(2, swapped, free_port()) == [(1, 1.0), (0, 1.0)]


def test_init_process_group_checks_its_arguments():
    for arguments, words in (
        ((0, 0), "n_devices is 0"), ((-1, 0), "n_devices is -1"),
        ((2, -1), "rank is -1, expected 0 to 1"), ((2, 2), "rank is 2"),
    ):
        with pytest.raises(ValueError, match=words):
            face.init_process_group(*arguments)
    with pytest.raises(ValueError, match="backend is 'gloo'"):
        face.init_process_group(1, 0, backend="gloo")


def test_host_and_port_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("CUPYX_DISTRIBUTED_HOST", "127.0.0.1")
    monkeypatch.setenv("CUPYX_DISTRIBUTED_PORT", str(free_port()))
    comm = face.init_process_group(1, 0)
    x = np.arange(3.0)
    out = np.zeros(3)
    comm.all_reduce(x, out)
    assert out.tolist() == [0, 1, 2] and comm.rank == 0
    comm.stop()
    monkeypatch.setenv("CUPYX_DISTRIBUTED_PORT", "many")
    with pytest.raises(ValueError):
        face.init_process_group(1, 0)


def test_mpi_that_is_not_there_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(RuntimeError, match="use_mpi=True needs the package mpi4py"):
        face.NCCLBackend(1, 0, use_mpi=True)


BY_MPI = """
import sys, numpy as np
from mpi4py import MPI
from hocket.compat.cupyx_distributed import NCCLBackend
mpi = MPI.COMM_WORLD.Get_rank()
comm = NCCLBackend(2, 1 - mpi, use_mpi=True)  # the ranks need not be MPI's
x = np.full(3, comm.rank + 1.0)
comm.broadcast(x, 0)
again = NCCLBackend(2, 1 - mpi, use_mpi=True)
y = np.zeros(3)
again.all_reduce(x, y)
assert x[0] == 1 and y[0] == 2, (x, y)
try:
    NCCLBackend(3, 0, use_mpi=True)
except ValueError as error:
    assert "COMM_WORLD has 2 processes" in str(error)
    sys.stdout.write("met\\n")
"""


def test_meeting_by_mpi():
    pytest.importorskip("mpi4py")
    mpiexec = shutil.which("mpiexec")
    if mpiexec is None:
        pytest.skip("mpiexec is not there")
    environment = with_package(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                               OMPI_MCA_rmaps_base_oversubscribe="1")
    done = subprocess.run([mpiexec, "-n", "2", sys.executable, "-c", BY_MPI], env=environment,
                          capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["met", "met"]


def fails(message):
    raise KeyError(message)


def sleeps():
    time.sleep(0.01)


def test_processes_hand_their_errors_on():
    import multiprocessing

    context = multiprocessing.get_start_method(allow_none=True)
    if context not in (None, "fork"):
        pytest.skip("processes are started otherwise here")
    process = face._store.ExceptionAwareProcess(target=fails, args=("what went wrong",))
    process.start()
    with pytest.raises(KeyError, match="what went wrong"):
        process.join()
    process = face._store.ExceptionAwareProcess(target=sleeps)
    process.start()
    process.join()
    assert process.exitcode == 0


def test_the_store_keeps_ints_and_bytes():
    store = face._store.TCPStore(1)
    port = free_port()
    store.run(port=port)
    proxy = face._store.TCPStoreProxy(port=port)
    for key, value in (("n", 1234), ("b", b"123\x00123"), ("negative", -1), ("large", 1 << 70)):
        proxy[key] = value
        assert proxy[key] == value
    for key, value in (("f", 1.5), (3, 1), ("s", "text"), ("t", True)):
        with pytest.raises(ValueError):
            proxy[key] = value
    with pytest.raises(ValueError):
        proxy[3]
    with pytest.raises(RuntimeError, match="no key 'absent'"):
        proxy["absent"]
    proxy.barrier()
    proxy.barrier()
    store.stop()
    store.stop()


def test_a_store_that_is_not_there_is_said(monkeypatch):
    monkeypatch.setattr(face._store.TCPStoreProxy, "MAX_NUM_RETRIES", 1)
    with pytest.raises(RuntimeError, match="TCPStore is not available"):
        face._store.TCPStoreProxy(port=free_port())["x"]


def test_the_documented_program_runs():
    program = (
        "import sys, cupy, cupyx.distributed\n"
        "cupy.cuda.Device(0).use()\n"
        "comm = cupyx.distributed.init_process_group(2, int(sys.argv[1]), port=int(sys.argv[2]))\n"
        "array = cupy.ones(1) if comm.rank == 0 else cupy.zeros(1)\n"
        "comm.broadcast(array, 0, cupy.cuda.Stream())\n"
        "print(cupy.equal(array, cupy.ones(1)))"
    )
    stand_ins = str(ROOT / "tests" / "python" / "support" / "stand_ins")
    program = f"import sys; sys.path.insert(0, {stand_ins!r})\n" + program
    assert outputs_of(run_jobs(program, 2, free_port())) == ["[ True]\n"] * 2
