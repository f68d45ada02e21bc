"""Arrays in GPUs' memory by MPI: hosts that are pretended, on GPUs that are none.

These GPUs' memory is the host's, so that an MPI which knows no CUDA can move it.
"""

import ctypes.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import hocket_command
import pytest
from processes import BUILD, PACKAGE, with_package

FAKE = BUILD / "fake_cuda"
PROGRAM = pathlib.Path(__file__).parents[2] / "gpu" / "moves_on_gpus.py"
LAUNCHERS = ["openmpi", "mpich"]
CARRIES = "carries movement and messages of GPUs"
pytestmark = pytest.mark.skipif(not FAKE.exists(), reason="this build has no fake driver")


def find_shims(name):
    return [*PACKAGE.glob(f"../lib/libhocket_mpi_{name}.so"),
            *PACKAGE.glob(f"**/libhocket_mpi_{name}.so")]


def run(name, *parts, ranks=3, hosts=None, **variables):
    launcher = shutil.which(f"mpirun.{name}")
    if launcher is None:
        pytest.skip(f"mpirun.{name} is not installed")
    if not find_shims(name):
        pytest.skip(f"hocket was built without {name}")
    hosts = hosts or ranks
    if hosts > 1 and not ctypes.util.find_library("ucp"):
        pytest.skip("there is no UCX here (libucp), which hosts meet by")
    options = ["-n", str(ranks)]
    if name == "openmpi":
        options += ["--allow-run-as-root", "--oversubscribe", "--mca", "plm", "isolated"]
    environment = with_package(LD_LIBRARY_PATH=str(FAKE), HOCKET_NCCL_LIBRARY="none",
                               HOCKET_ENGINES="mpi", HOCKET_MPI_GPUS="always", HOCKET_LOG="debug",
                               HOCKET_TEST_HOSTS=str(hosts))
    return subprocess.run(
        [launcher, *options, sys.executable, PROGRAM, "fake", *parts],
        env={**environment, **variables}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=120)


def expect(done, part, times, carried=True):
    assert done.stdout.count(f"{part} done") == times, done.stdout
    assert (CARRIES in done.stdout) == carried, done.stdout


@pytest.mark.parametrize("ranks, hosts", [(1, 1), (2, 2), (3, 3), (3, 2), (2, 1)])
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_movement(launcher, ranks, hosts):
    done = run(launcher, "movement", ranks=ranks, hosts=hosts)
    assert done.returncode == 0, done.stdout
    expect(done, "movement", ranks, carried=ranks > 1)


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_calls_keep_the_order_of_the_stream_with_those_that_the_host_carries(launcher):
    done = run(launcher, "order")
    assert done.returncode == 0, done.stdout
    expect(done, "order", 3)


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_messages(launcher, ranks):
    done = run(launcher, "messages", ranks=ranks)
    assert done.returncode == 0, done.stdout
    expect(done, "messages", ranks)


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_groups(launcher):
    done = run(launcher, "groups")
    assert done.returncode == 0, done.stdout
    expect(done, "groups", 3)


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_captures_of_other_streams_go_on(launcher):
    done = run(launcher, "beside_capture", ranks=2)
    assert done.returncode == 0, done.stdout
    expect(done, "beside_capture", 2)


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_rank_without_memory_for_it_says_so_at_once(launcher):
    done = run(launcher, "memory")
    assert done.returncode == 0, done.stdout
    expect(done, "memory", 3)
    told = [line for line in done.stdout.splitlines() if "GPU engine mpi: " in line]
    assert len(told) == 3, done.stdout
    assert all("rank 1: " in line and "33554432 bytes" in line for line in told), told


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_another_gpu_of_a_process_is_refused(launcher):
    done = run(launcher, "other_gpu", ranks=2, hosts=1)
    assert done.returncode == 0, done.stdout
    expect(done, "other_gpu", 2)
    told = [line for line in done.stdout.splitlines() if "GPU engine mpi: " in line]
    assert len(told) == 2, done.stdout
    assert all("MPI has moved memory of GPU 0 in this process" in line for line in told), told


# The exit code of the mpirun is not checked: MPI may not have been finalized.
@pytest.mark.parametrize("part", ["deadline", "stopped", "mismatch", "length"])
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_what_fails_says_so_and_the_ranks_go_on(launcher, part):
    expect(run(launcher, part), part, 3)


def test_a_killed_rank_is_found_and_the_others_go_on():
    """Under Open MPI, with an option to let the others live: Hydra always ends them."""
    done = run("openmpi", "death", OMPI_MCA_orte_abort_on_non_zero_status="0")
    expect(done, "death", 2)
    assert "GPU engine mpi: MPI has lost a rank" in done.stdout, done.stdout


@pytest.mark.parametrize("value, note", [
    ("never", "GPU engine mpi: HOCKET_MPI_GPUS=never"),
    ("auto", "says that it does not know CUDA's memory"),
])
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_it_says_why_the_host_carries(launcher, value, note):
    done = run(launcher, "movement", ranks=2, hosts=1, HOCKET_MPI_GPUS=value)
    assert done.returncode == 0 and note in done.stdout, done.stdout
    expect(done, "movement", 2, carried=False)


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_doctor_asks_mpi_where_there_are_gpus(launcher):
    if not find_shims(launcher):
        pytest.skip(f"hocket was built without {launcher}")
    said = hocket_command.run(
        "doctor", "--json", env={**os.environ, "LD_LIBRARY_PATH": str(FAKE)})
    note = next(e["note"] for e in json.loads(said.stdout)["engines"] if e["name"] == "mpi")
    name = {"openmpi": "Open MPI", "mpich": "MPICH"}[launcher]
    assert re.search(rf"GPU memory too.*\b{name}[^,]* says (yes|no|nothing)", note), note


def test_a_value_that_is_none_is_refused():
    done = run("mpich", "movement", ranks=2, hosts=1, HOCKET_MPI_GPUS="sometimes")
    assert done.returncode != 0
    assert "HOCKET_MPI_GPUS=sometimes is not one of never, auto, always" in done.stdout
