"""Joining by a process group of the user's own, by MPI's and by PyTorch's."""

import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from processes import outputs_of, start, with_package

import hocket

ENVIRONMENT = with_package()

# A process group over a socket a rank to rank 0, of which hocket knows nothing.
GROUP = """
import socket, sys
import numpy as np
import hocket

class Sockets(hocket.Bootstrap):
    def __init__(self, rank, size, descriptors):
        self._rank, self._size = rank, size
        self._sockets = [socket.socket(fileno=fd) for fd in descriptors]
        self.calls = []
    @property
    def rank(self):
        return self._rank
    @property
    def size(self):
        return self._size
    def _receive(self, other, count):
        data = b""
        while len(data) < count:
            part = other.recv(count - len(data))
            if not part:
                raise ConnectionError("a rank has gone")
            data += part
        return data
    def broadcast(self, buffer, root):
        assert root == 0 and buffer.dtype == np.uint8
        self.calls.append("broadcast")
        for other in self._sockets:
            if self._rank == 0:
                other.sendall(buffer.tobytes())
            else:
                buffer[:] = np.frombuffer(self._receive(other, buffer.nbytes), "uint8")
    def all_reduce(self, values, op):
        assert values.dtype == np.int64
        self.calls.append("all_reduce " + op)
        fold = {"sum": np.add, "min": np.minimum, "max": np.maximum}[op]
        if self._rank == 0:
            for other in self._sockets:
                theirs = np.frombuffer(self._receive(other, values.nbytes), "int64")
                fold(values, theirs, out=values)
            for other in self._sockets:
                other.sendall(values.tobytes())
        else:
            self._sockets[0].sendall(values.tobytes())
            values[:] = np.frombuffer(self._receive(self._sockets[0], values.nbytes), "int64")

rank, size = int(sys.argv[1]), int(sys.argv[2])
group = Sockets(rank, size, [int(fd) for fd in sys.argv[3:]])
"""

USE = """
comm = hocket.init(bootstrap=group)
used = len(group.calls)
x = np.arange(5) + 10.0 * rank
comm.all_reduce(x)
expected = np.arange(5) * size + 10.0 * sum(range(size))
assert (x == expected).all(), x
assert comm.rank == rank and comm.size == size and len(group.calls) == used
half = comm.split(color=rank % 2)
y = np.array([rank], "int32")
half.all_reduce(y)
assert y[0] == sum(range(rank % 2, size, 2)), y
print("right")
"""


def run_group(size, program):
    """Runs `program` on ranks that a star of sockets connects; what each printed."""
    pairs = [socket.socketpair() for _ in range(size - 1)]
    ranks = []
    for rank in range(size):
        mine = [pair[0] for pair in pairs] if rank == 0 else [pairs[rank - 1][1]]
        descriptors = [each.fileno() for each in mine]
        ranks.append(start("-c", GROUP + program, rank, size, *descriptors, pass_fds=descriptors))
    for pair in pairs:
        pair[0].close()
        pair[1].close()
    return outputs_of(ranks)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_group_of_the_user_s_own(size):
    assert run_group(size, USE) == ["right\n"] * size


TOLD = "rank 1 was given wrong arguments or settings for init; see its output\n"


def test_what_one_rank_gets_wrong_all_are_told():
    outputs = run_group(
        3,
        """
try:
    hocket.init(bootstrap=group, rank=2 if rank == 1 else None, size=3 if rank == 1 else None)
except hocket.InvalidArgument as error:
    print(error)
""",
    )
    assert "was given rank 2 of 3, and a bootstrap that says rank 1 of 3" in outputs[1]
    for rank in (0, 2):
        assert outputs[rank] == TOLD


@pytest.mark.parametrize("call", ["init(bootstrap=group, ", "Context.initialize(bootstrap=group, "])
def test_what_one_rank_s_python_refuses_all_are_told(call):
    outputs = run_group(
        2,
        f"""
try:
    hocket.{call}deadline="soon" if rank == 1 else 10)
except hocket.InvalidArgument as error:
    print(error)
""",
    )
    assert outputs[0] == TOLD
    assert outputs[1].startswith("deadline is a str")


def test_what_is_wrong_in_one_rank_s_environment_all_are_told():
    outputs = run_group(
        2,
        """
import os
if rank == 1:
    os.environ["HOCKET_DEADLINE"] = "soon"
try:
    hocket.init(bootstrap=group)
except hocket.InvalidArgument as error:
    print(error)
""",
    )
    assert outputs[0] == TOLD
    assert "HOCKET_DEADLINE=soon" in outputs[1]


def test_where_rank_zero_cannot_serve_all_are_told():
    outputs = run_group(
        2,
        """
try:
    hocket.init(bootstrap=group, address="203.0.113.7:0")
except hocket.Error as error:
    print(error)
""",
    )
    assert all("203.0.113.7" in output for output in outputs), outputs
    assert outputs[1].startswith("rank 0 cannot serve the others: ")


def test_an_address_of_rank_zero_s_host():
    outputs = run_group(
        2,
        """
comm = hocket.init(bootstrap=group, address="127.0.0.1:0")
x = np.array([rank + 1.0])
comm.all_reduce(x)
print(x[0])
""",
    )
    assert outputs == ["3.0\n", "3.0\n"]


def test_what_the_group_raises_is_raised():
    outputs = run_group(
        2,
        """
if rank == 1:
    sys.exit()
try:
    hocket.init(bootstrap=group)
except ConnectionError as error:
    print(error)
""",
    )
    assert outputs == ["a rank has gone\n", ""]


def test_other_types_are_refused():
    with pytest.raises(TypeError, match="derive it from hocket.Bootstrap"):
        hocket.init(bootstrap=3)
    with pytest.raises(TypeError, match="intracommunicator of mpi4py"):
        hocket.init(mpi="world")
    with pytest.raises(hocket.InvalidArgument, match="both bootstrap and mpi"):
        hocket.init(bootstrap=3, mpi=4)


def test_a_group_whose_rank_is_no_number():
    class Group(hocket.Bootstrap):
        rank, size = "0", 1
        broadcast = all_reduce = None

    with pytest.raises(hocket.InvalidArgument, match="the bootstrap's rank is a str"):
        hocket.init(bootstrap=Group())


MPI_PROGRAM = """
import numpy as np
from mpi4py import MPI
import hocket
world = MPI.COMM_WORLD
turned = world.Split(0, -world.Get_rank())  # in descending order
comm = hocket.init(mpi=turned)
assert comm.rank == world.Get_size() - 1 - world.Get_rank() and comm.size == world.Get_size()
x = np.arange(3.0) * (comm.rank + 1)
comm.all_reduce(x)
n = comm.size
assert (x == np.arange(3.0) * (n * (n + 1) // 2)).all()
print("right")
"""


@pytest.mark.parametrize("launcher", ["mpirun.openmpi", "mpirun.mpich"])
def test_a_communicator_of_mpi4py(launcher, tmp_path):
    pytest.importorskip("mpi4py")
    if shutil.which(launcher) is None:
        pytest.skip(f"{launcher} is not installed")
    open_mpi = launcher.endswith("openmpi")
    # mpi4py's wheel looks for MPICH by another name than Debian's.
    for library in Path("/usr/lib").glob("*/libmpich.so.12"):
        (tmp_path / "libmpi.so.12").symlink_to(library)
    options = ["--allow-run-as-root", "--oversubscribe"] if open_mpi else []
    job = subprocess.run(
        [launcher, *options, "-n", "3", sys.executable, "-c", MPI_PROGRAM],
        env={
            **ENVIRONMENT,
            "MPI4PY_MPIABI": "openmpi" if open_mpi else "mpich",
            "LD_LIBRARY_PATH": str(tmp_path),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=50,
    )
    assert job.returncode == 0 and job.stdout.count("right") == 3, job.stdout


TORCH_PROGRAM = """
import sys
import numpy as np, torch.distributed as dist
import hocket
rank, size = int(sys.argv[1]), int(sys.argv[2])
dist.init_process_group("gloo", init_method="file://" + sys.argv[3], rank=rank, world_size=size)
comm = hocket.init(bootstrap=hocket.TorchBootstrap())
x = np.array([2.0 ** rank])
comm.all_reduce(x)
assert x[0] == 2.0 ** size - 1, x
pair = dist.new_group([1, 2])
if rank > 0:
    two = hocket.init(bootstrap=hocket.TorchBootstrap(pair))
    y = np.array([rank])
    two.all_reduce(y)
    assert two.rank == rank - 1 and two.size == 2 and y[0] == 3
print("right")
"""


def test_a_group_of_torch_distributed(tmp_path):
    pytest.importorskip("torch")
    outputs = outputs_of([start("-c", TORCH_PROGRAM, rank, 3, tmp_path / "meet") for rank in range(3)])
    assert all("right" in output for output in outputs), outputs
