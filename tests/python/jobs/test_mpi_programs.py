"""Unmodified MPI programs: how they find hocket's libraries, and JAX's collectives."""

import ctypes
import json
import os
from pathlib import Path

import hocket_command
import numpy as np
import pytest
from processes import free_address, run_job

import hocket.mpi

JAX_PROGRAM = Path(__file__).with_name("jax_collectives.py")


def library(interface):
    try:
        return hocket.mpi.library(interface)
    except FileNotFoundError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("interface, name", [("mpich", "MPI_Send"), ("standard", "MPI_Comm_toint"),
                                             ("mpitrampoline", "MPIABI_Send")])
def test_a_library_has_its_interface(interface, name):
    assert hasattr(ctypes.CDLL(library(interface)), name)


def test_another_interface_is_refused():
    with pytest.raises(ValueError, match="interface is 'openmpi'.*'mpich', 'standard', 'mpitrampoline'"):
        hocket.mpi.library("openmpi")


def test_a_job_finds_the_libraries():
    program = "import json, os; print(json.dumps(dict(os.environ)))"
    path = library("mpich")
    job = run_job(1, "-c", program, before=["--mpi", "--no-prefix"])
    found = json.loads(job.stdout)
    assert found["MPI4PY_LIBMPI"] == path
    assert found["MPITRAMPOLINE_LIB"] == library("mpitrampoline")
    assert found["LD_LIBRARY_PATH"].split(":")[0] == os.path.dirname(path)


def test_doctor_says_where_the_libraries_are():
    folder = os.path.dirname(library("mpich"))
    machine = json.loads(hocket_command.run("doctor", "--json").stdout)
    (found,) = [each for each in machine["libraries"] if each["name"] == "hocket's MPI"]
    assert (found["version"], found["where"]) == ("5.0", folder)
    assert folder in hocket_command.run("doctor").stdout


def jax_results(implementation, ranks, folder):
    file = folder / implementation
    job = run_job(ranks, JAX_PROGRAM, free_address(), file,
                  before=["--mpi"], timeout=170,
                  env={"JAX_CPU_COLLECTIVES_IMPLEMENTATION": implementation, "JAX_PLATFORMS": "cpu"})
    assert job.returncode == 0, job.stdout
    return [np.load(f"{file}.{rank}.npz") for rank in range(ranks)]


@pytest.mark.parametrize("ranks", [2, 3])
def test_jax_has_the_results_of_gloo(ranks, tmp_path):
    pytest.importorskip("jax")
    library("mpitrampoline")
    ours, theirs = (jax_results(each, ranks, tmp_path) for each in ("mpi", "gloo"))
    for rank in range(ranks):
        assert len(theirs[rank].files) > 60 and set(ours[rank].files) == set(theirs[rank].files)
        for name in theirs[rank].files:
            np.testing.assert_array_equal(ours[rank][name], theirs[rank][name], err_msg=name)
