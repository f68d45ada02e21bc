"""Symmetric memory from NVSHMEM's heap: a stand-in for that library, on GPUs that are none."""

import ctypes
import ctypes.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fake_gpu import Array, Driver
from processes import BUILD, free_port, needs_ucx

import hocket
from hocket._command import find_command

CUDA = BUILD / "fake_cuda"
LIBRARY = BUILD / "fake_nvshmem" / "libnvshmem_host.so.3"
pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="this build has no stand-in")
MIB = 1 << 20


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", str(CUDA))
    monkeypatch.setenv("HOCKET_NVSHMEM_LIBRARY", str(LIBRARY))
    monkeypatch.setenv("HOCKET_NCCL_LIBRARY", "none")
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).parent}:{Path(__file__).parents[1] / 'support'}:{BUILD / 'python'}")
    for name in [name for name in os.environ if name.startswith("NVSHMEM_")]:
        monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def nothing_left():
    """Checks that the stand-in leaves no files, however a test's processes have ended."""
    yield
    assert [name for name in os.listdir("/dev/shm") if "nvshmem" in name] == []


def on_gpu(comm):
    driver = Driver()
    driver.use(comm.rank)
    return driver


def host(array):
    """The memory behind it as NumPy's, as the driver is fake."""
    interface = array.__cuda_array_interface__
    dtype = np.dtype(interface["typestr"])
    nbytes = int(np.prod(interface["shape"])) * dtype.itemsize
    memory = (ctypes.c_char * nbytes).from_address(interface["data"][0])
    return np.frombuffer(memory, dtype).reshape(interface["shape"])


def refusal(call):
    try:
        call()
    except hocket.InvalidArgument as error:
        return str(error)
    raise AssertionError("it was not refused")


def empty(comm, shape, dtype="int32", **options):
    return comm.symmetric.empty(shape, dtype, heap="nvshmem", **options)


def is_used(comm):
    driver = on_gpu(comm)
    n, r = comm.size, comm.rank
    a = empty(comm, (3, 50))
    assert type(a).__name__ == "GpuArray" and a.shape == (3, 50) and a.data_ptr % 64 == 0
    assert not host(a).any()
    host(a)[...] = np.arange(150).reshape(3, 50) + 1000 * r
    comm.barrier()
    other = (r + 1) % n
    theirs = comm.symmetric.peer(a, other)
    assert np.array_equal(host(theirs), np.arange(150).reshape(3, 50) + 1000 * other)
    assert comm.symmetric.peer(a, r).data_ptr == a.data_ptr
    # It is mapped for this rank's GPU, wherever it lies.
    assert theirs.__dlpack_device__() == a.__dlpack_device__() == (2, r)
    comm.barrier()
    host(theirs)[1, 7] = 77 + r
    comm.barrier()
    assert host(a)[1, 7] == 77 + (r - 1) % n
    comm.barrier()
    x = Array(driver, np.arange(150, dtype="int32").reshape(3, 50) * (r + 1))
    comm.all_reduce(x, out=a)
    driver.synchronize()
    assert np.array_equal(host(a), np.arange(150).reshape(3, 50) * (n * (n + 1) // 2))
    comm.symmetric.free(a)
    assert "not symmetric" in refusal(lambda: comm.symmetric.peer(a, 0))
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_char_p
    return getenv(b"NVSHMEM_DISABLE_NVLS"), getenv(b"NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME")


@pytest.mark.parametrize("n", [1, 2, 4])
def test_arrays_lie_in_the_heap_and_peers_reach_them(n):
    # Multicast is off, and NVSHMEM's own sockets stay on this host.
    assert hocket.spawn(is_used, n) == [(b"1", b"lo")] * n


def gives_back(comm):
    on_gpu(comm)
    a = empty(comm, 40 * MIB, "uint8")
    assert "has no room" in refusal(lambda: empty(comm, 40 * MIB, "uint8"))
    host(a)[...] = comm.rank + 1
    first = a.data_ptr
    if comm.rank == 0:
        kept, a = a, None
    else:
        a = None
    # As long as one rank holds it.
    assert "has no room" in refusal(lambda: empty(comm, 40 * MIB, "uint8"))
    kept = None
    b = empty(comm, 40 * MIB, "uint8")
    assert b.data_ptr == first and not host(b).any()
    del kept
    return True


def test_memory_goes_back_when_all_have_dropped_it():
    assert hocket.spawn(gives_back, 2) == [True] * 2


def fills_its_gpu(comm):
    on_gpu(comm)
    assert "has 17179869184 free" in refusal(lambda: empty(comm, 1 << 34, "uint8"))
    a, b = empty(comm, 10 * MIB, "uint8"), empty(comm, 20 * MIB, "uint8")
    first = a.data_ptr
    os.environ["FAKE_CUDA_FREE"] = str(256 * MIB)
    assert "has 268435456 free" in refusal(lambda: empty(comm, 1))
    # The heap can allocate freed memory again, in one piece if it is contiguous.
    a = None
    a = empty(comm, 8 * MIB, "uint8")
    assert a.data_ptr == first
    assert "free" in refusal(lambda: empty(comm, 3 * MIB, "uint8"))
    a = b = None
    a = empty(comm, 30 * MIB, "uint8")
    assert a.data_ptr == first
    assert "free" in refusal(lambda: empty(comm, 1))
    return True


def test_a_heap_that_cannot_grow_is_not_asked_to():
    """The real one does not survive it."""
    assert hocket.spawn(fills_its_gpu, 2) == [True] * 2


def in_groups(comm):
    driver = on_gpu(comm)
    pair = comm.split(comm.rank // 2)
    first = refusal(lambda: pair.symmetric.nvshmem_team())
    a = empty(comm, 4, "float64")
    assert comm.symmetric.nvshmem_team() == 0
    team = pair.symmetric.nvshmem_team()
    assert team == pair.symmetric.nvshmem_team() != 0
    # A group uses the same arrays as the world.
    mate = pair.symmetric.peer(a, 1 - pair.rank)
    assert mate.data_ptr == comm.symmetric.peer(a, comm.rank ^ 1).data_ptr
    pair.all_reduce(Array(driver, np.full(4, comm.rank + 1.0)), out=a)
    driver.synchronize()
    assert np.array_equal(host(a), np.full(4, 3.0 if comm.rank < 2 else 7.0))
    backwards = comm.split(0, key=-comm.rank)
    b = empty(backwards, 5)
    host(b)[...] = comm.rank
    comm.barrier()
    assert (host(backwards.symmetric.peer(b, 0)) == 3).all()
    assert backwards.symmetric.nvshmem_team() != 0
    return first, refusal(lambda: empty(pair, 3)), team


def test_groups_are_teams_and_memory_is_of_all():
    told = hocket.spawn(in_groups, 4)
    for first, later, _ in told:
        assert "does not run in rank 0" in first
        assert "as PE" in later and "of 4, and these are 2 ranks" in later
    assert told[0][2] == told[1][2] and told[2][2] == told[3][2]


def first_in_a_group(comm):
    on_gpu(comm)
    pair = comm.split(comm.rank // 2)
    a = empty(pair, 10)
    host(a)[...] = comm.rank
    pair.barrier()
    assert (host(pair.symmetric.peer(a, 1 - pair.rank)) == (comm.rank ^ 1)).all()
    # One rank of each: PEs 0 and 1 of 2, but of two worlds.
    mixed = comm.split(0 if comm.rank in (0, 3) else 1)
    return refusal(lambda: empty(mixed, 3)), refusal(lambda: empty(comm, 3))


def test_who_asks_first_decides_whose_world_it_is():
    for mixed, world in hocket.spawn(first_in_a_group, 4):
        assert "not as one world" in mixed
        assert "as PE 0 of 2, and these are 4 ranks" in world


def join(comm, *groups):
    """A second world in this process, of those of `comm`'s ranks that are in one group with it."""
    ports = comm.broadcast_object([free_port() for _ in groups] if comm.rank == 0 else None)
    for group, port in zip(groups, ports):
        if comm.rank in group:
            return hocket.init(rank=group.index(comm.rank), size=len(group), key=bytes(range(32)),
                               address=f"127.0.0.1:{port}", timeout=40)


def has_worlds(comm):
    on_gpu(comm)
    first = join(comm, [0, 1])
    a = empty(first, 40 * MIB, "uint8")
    where = a.data_ptr
    del a
    first.close()
    # The heap has the first world's memory back; the PEs have another order here.
    second = join(comm, [1, 0])
    b = empty(second, 40 * MIB, "uint8")
    assert b.data_ptr == where
    third = join(comm, [0, 1])
    c = empty(third, 5, "uint8")
    for world, array in ((second, b), (third, c)):
        host(array)[...] = 10 + world.rank
        world.barrier()
        assert (host(world.symmetric.peer(array, 1 - world.rank)) == 11 - world.rank).all()
        world.barrier()
    assert second.symmetric.nvshmem_team() != 0 == third.symmetric.nvshmem_team()
    Driver().use(comm.rank + 2)
    text = refusal(lambda: empty(join(comm, [0, 1]), 5))
    assert "started on GPU 0 of this process, and this rank's GPU is 2" in text, text
    return True


def test_worlds_of_one_process_share_its_nvshmem():
    assert hocket.spawn(has_worlds, 2) == [True] * 2


def has_worlds_of_others(comm):
    on_gpu(comm)
    pair = join(comm, [0, 1], [2, 3])
    a = empty(pair, 3)
    # PEs 0 and 1 of 2, but not of one world.
    mixed = join(comm, [0, 3], [1, 2])
    texts = refusal(lambda: empty(mixed, 3)), refusal(lambda: mixed.symmetric.nvshmem_team())
    del a
    return *texts, refusal(lambda: empty(join(comm, [0], [1], [2], [3]), 3))


def test_a_world_of_others_is_refused():
    for array, team, alone in hocket.spawn(has_worlds_of_others, 4):
        assert "not as one world of these ranks" in array
        assert "ranks 0 and 1 are in different worlds" in team
        assert "of 2, and these are 1 ranks" in alone and "or are not of this job" in alone


def fails_in_one(comm, call):
    on_gpu(comm)
    turned = comm.split(0, key=-comm.rank)  # its team differs from the team of all ranks
    if call == "team":
        empty(comm, 3)
    os.environ["FAKE_NVSHMEM_FAIL"] = call
    comm.barrier()
    # Those who wait in NVSHMEM hear of it at once, not at their deadline.
    text = refusal(lambda: (empty(comm, 3, timeout=25) if call == "start"
                            else turned.symmetric.nvshmem_team(timeout=25)))
    used = comm if call == "start" else turned
    x = np.full(3, comm.rank + 1.0)
    used.all_reduce(x)
    assert (x == 6).all()
    return text, refusal(lambda: empty(comm, 3))


@pytest.mark.parametrize("call, where, why", [
    ("start", "rank 1 has no symmetric memory for NVSHMEM's start", "3.4.5 did not start (status 7)"),
    ("team", "rank 1 has no symmetric memory for a team of", "made no team of 3 PEs (status 7)"),
])
def test_a_call_that_fails_on_one_rank_ends_on_all(call, where, why):
    for text, later in hocket.spawn(fails_in_one, 3, call):
        assert where in text and why in text
        assert "rank 0: NVSHMEM was left in the middle of" in later


def fails_everywhere(comm):
    on_gpu(comm)
    text = refusal(lambda: empty(comm, 3))
    x = np.full(3, comm.rank + 1.0)
    comm.all_reduce(x)
    assert (x == 6).all()
    return text


def test_a_start_that_fails_on_all_ranks(monkeypatch):
    monkeypatch.setenv("NVSHMEM_DISABLE_NVLS", "0")  # the stand-in refuses that
    for text in hocket.spawn(fails_everywhere, 3):
        assert "NVSHMEM's start: NVSHMEM 3.4.5 did not start (status 1)" in text


def is_apart(comm):
    driver = on_gpu(comm)
    a = empty(comm, 100)
    assert comm.symmetric.peer(a, comm.rank).data_ptr == a.data_ptr
    comm.all_reduce(Array(driver, np.ones(100, "int32")), out=a)
    driver.synchronize()
    assert (host(a) == 2).all()
    return refusal(lambda: comm.symmetric.peer(a, 1 - comm.rank))


def test_a_heap_that_is_not_mapped_is_told(monkeypatch):
    monkeypatch.setenv("FAKE_NVSHMEM_APART", "1")
    for rank, text in enumerate(hocket.spawn(is_apart, 2)):
        assert f"rank {1 - rank}'s part of int32[100] of communicator world cannot" in text


def is_refused(comm):
    on_gpu(comm)
    texts = [refusal(lambda: empty(comm, 3))]
    comm.barrier()
    return texts[0]


def with_one_rank_s_library_gone(comm):
    if comm.rank == 1:
        os.environ["HOCKET_NVSHMEM_LIBRARY"] = "/nowhere/libnvshmem_host.so.3"
    return is_refused(comm)


def test_libraries_that_cannot_be_used(monkeypatch):
    monkeypatch.setenv("FAKE_NVSHMEM_VERSION", "3.1.7")
    for text in hocket.spawn(is_refused, 2):
        assert "rank 0: " in text and "is NVSHMEM 3.1.7, and hocket needs 3.2.0" in text
    monkeypatch.setenv("FAKE_NVSHMEM_VERSION", "4.0.0")
    assert "4.0.0" in hocket.spawn(is_refused, 1)[0]
    monkeypatch.setenv("HOCKET_NVSHMEM_LIBRARY", "/nowhere/libnvshmem_host.so.3")
    for text in hocket.spawn(is_refused, 2):
        assert "rank 0: HOCKET_NVSHMEM_LIBRARY: /nowhere/" in text


def refuses_bad_arguments(comm):
    on_gpu(comm)
    with pytest.raises(hocket.InvalidArgument, match='heap is "mine", expected "hocket" or'):
        comm.symmetric.empty(3, heap="mine")
    with pytest.raises(hocket.InvalidArgument, match='memory is "host"'):
        empty(comm, 3, memory="host")
    comm.barrier()
    heap = "nvshmem" if comm.rank == 0 else "hocket"
    with pytest.raises(hocket.Mismatch, match="NVSHMEM's heap"):
        comm.symmetric.empty(3, "int32", memory="cuda", heap=heap)
    return True


def test_bad_arguments():
    assert hocket.spawn(refuses_bad_arguments, 2) == [True] * 2


def is_of_threads(comm):
    text = refusal(lambda: empty(comm, 3))
    assert "threads of one process" in text, text


def test_ranks_that_are_threads():
    program = """
import test_nvshmem, hocket
hocket.run_threads(test_nvshmem.is_of_threads, 2)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          timeout=50)
    assert done.returncode == 0, done.stderr


def hangs(comm, call):
    """PE 1 never comes out of a call: the others' deadline ends theirs."""
    on_gpu(comm)
    # All is loaded, and what takes time has been done, before the time counts.
    if call == "start":
        assert "does not run" in refusal(lambda: comm.symmetric.nvshmem_team())
    else:
        empty(comm, 3)
    if comm.rank == 1:
        os.environ["FAKE_NVSHMEM_HANG"] = call
    comm.barrier()
    with pytest.raises(hocket.DeadlineExceeded) as error:
        empty(comm, 3, timeout=5 if comm.rank == 0 else 50)
    again = comm.rebuild(timeout=40)
    text = refusal(lambda: empty(again, 3))
    # hocket's own memory goes on.
    assert host(again.symmetric.empty(3, "int32", memory="cuda")).shape == (3,)
    again.barrier()
    # It is the process's, whatever the world.
    assert refusal(lambda: empty(join(again, [0, 1, 2]), 3)).endswith(text[text.index("rank 0:"):])
    return str(error.value), text


@pytest.mark.parametrize("call, name", [("start", "starting"), ("malloc", "an allocation")])
def test_a_call_that_does_not_end(call, name):
    for error, text in hocket.spawn(hangs, 3, call):
        assert "did not finish within 5 s" in error and "NVSHMEM's heap" in error
        assert f"NVSHMEM was left in the middle of {name}" in text


def loses_one(comm, out):
    on_gpu(comm)
    a = empty(comm, 3)
    if comm.rank == 1:
        os.environ["FAKE_NVSHMEM_DIE"] = "malloc"
    with pytest.raises(hocket.PeerDied) as error:
        empty(comm, 3)
    again = comm.rebuild(timeout=40)
    text = refusal(lambda: empty(again, 3))
    b = again.symmetric.empty(3, "int32", memory="cuda")
    host(b)[...] = again.rank
    again.barrier()
    assert (host(again.symmetric.peer(b, 1 - again.rank)) == 1 - again.rank).all()
    again.barrier()
    del a
    Path(out, str(comm.rank)).write_text(f"{error.value.rank} {text}")


def test_a_rank_that_dies_in_a_call(tmp_path):
    program = f"""
import test_nvshmem, hocket
with hocket.init() as world: test_nvshmem.loses_one(world, {str(tmp_path)!r})
"""
    command = [find_command(), "run", "--keep-going", "-n", "3", "--", sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=55)
    assert "killed by SIGKILL" in done.stderr, done.stderr
    for rank in (0, 2):
        assert (tmp_path / str(rank)).exists(), done.stderr
        told = (tmp_path / str(rank)).read_text()
        assert told.startswith("1 there is no memory of NVSHMEM's heap for int32[3]")
        assert "left in the middle of an allocation" in told


PROGRAM = """
import test_nvshmem, hocket
with hocket.init() as world:
    driver = test_nvshmem.on_gpu(world)
    kept = test_nvshmem.empty(world, (2, 3), "float32")
"""


def test_what_is_left_is_named():
    command = [find_command(), "run", "-n", "2", "--", sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    assert "float32[6] of communicator world" in done.stderr and "still held" in done.stderr


def start_by_program(comm, ranks, pes):
    """The program starts NVSHMEM itself, as PE `pes[rank]` of `ranks`."""
    driver = on_gpu(comm)
    ids = np.zeros(128, "uint8")
    library = ctypes.CDLL(os.environ["HOCKET_NVSHMEM_LIBRARY"])
    os.environ["NVSHMEM_DISABLE_NVLS"] = "1"
    tag = ctypes.c_int.from_buffer(ids)
    tag.value = (1 << 16) + 128
    if comm.rank == 0:
        assert library.nvshmemx_get_uniqueid(ids.ctypes.data_as(ctypes.c_void_p)) == 0
    comm.broadcast(ids)

    class Attributes(ctypes.Structure):
        _fields_ = [("version", ctypes.c_int), ("mpi", ctypes.c_void_p),
                    ("arguments", ctypes.c_int), ("pad", ctypes.c_int),
                    ("id_version", ctypes.c_int), ("id", ctypes.c_void_p), ("rank", ctypes.c_int),
                    ("ranks", ctypes.c_int), ("rest", ctypes.c_char * 96)]

    if pes[comm.rank] >= 0:
        given = Attributes((1 << 16) + 144, None, (1 << 16) + 128, 0, (1 << 16) + 24,
                           ids.ctypes.data, pes[comm.rank], ranks)
        assert library.nvshmemx_hostlib_init_attr(8, ctypes.byref(given)) == 0
    comm.barrier()
    return driver


def runs_already(comm, ranks, pes):
    driver = start_by_program(comm, ranks, pes)
    try:
        a = empty(comm, 30)
    except hocket.InvalidArgument as error:
        return str(error)
    host(a)[...] = comm.rank
    comm.barrier()
    for other in range(comm.size):
        assert (host(comm.symmetric.peer(a, other)) == other).all()
    driver.synchronize()
    comm.barrier()
    return comm.symmetric.nvshmem_team()


def test_nvshmem_that_runs_already_is_used_or_refused():
    assert hocket.spawn(runs_already, 2, 2, [0, 1]) == [0, 0]
    teams = hocket.spawn(runs_already, 3, 3, [2, 0, 1])  # in another order
    assert len(set(teams)) == 1 and teams[0] != 0
    for text in hocket.spawn(runs_already, 3, 2, [0, 1, -1]):
        assert "runs in rank 0 as PE 0 of 2 and not in rank 2" in text


def teams_of_anothers(comm):
    """The program's own world. Its PEs are the job's ranks, and all ranks must say so."""
    start_by_program(comm, comm.size, list(range(comm.size)))
    half = comm.split(comm.rank // 2)
    before = refusal(lambda: half.symmetric.nvshmem_team())
    assert comm.symmetric.nvshmem_team() == 0
    empty(comm, 3)
    return before, half.symmetric.nvshmem_team()


def test_teams_of_a_world_that_the_program_started():
    told = hocket.spawn(teams_of_anothers, 4)
    for rank, (before, team) in enumerate(told):
        assert "the program has started it in rank 0" in before and "of 4" in before, before
        assert team == told[rank ^ 1][1] != 0


def on_two_hosts(comm):
    on_gpu(comm)
    assert "ranks on several; use that of intra_node()" in refusal(lambda: empty(comm, 3))
    near = comm.intra_node
    a = empty(near, 3)
    host(a)[...] = comm.rank
    near.barrier()
    assert (host(near.symmetric.peer(a, 1 - near.rank)) == comm.rank ^ 1).all()
    text = refusal(lambda: comm.symmetric.nvshmem_team())
    assert "a team of NVSHMEM is of one host" in text and "intra_node()" in text, text
    assert near.symmetric.nvshmem_team() == 0
    comm.barrier()
    print("all said", flush=True)


@needs_ucx
def test_each_host_has_a_world_of_its_own():
    program = """
import os
os.environ["HOCKET_HOST"] = f"{int(os.environ['HOCKET_RANK']) // 2}/"
import test_nvshmem, hocket
with hocket.init() as world: test_nvshmem.on_two_hosts(world)
"""
    command = [find_command(), "run", "-n", "4", "--", sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=55)
    assert done.stdout.count("all said") == 4, done.stdout + done.stderr


def shares_a_gpu(comm):
    Driver().use(0)
    return refusal(lambda: empty(comm, 3))


def test_two_ranks_of_one_gpu():
    for text in hocket.spawn(shares_a_gpu, 2):
        assert "ranks 0 and 1 use one GPU" in text
