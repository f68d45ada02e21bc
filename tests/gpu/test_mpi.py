"""Arrays in GPUs' memory between pretended hosts, by an MPI that knows CUDA: run by
tools/check/gpu_check.sh. HOCKET_TEST_MPIRUN names that MPI's mpirun; default `mpirun`."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from gpu_packages import count_gpus
from processes import with_package

from hocket._command import find_command

PROGRAM = Path(__file__).parent / "moves_on_gpus.py"
MPIRUN = shutil.which(os.environ.get("HOCKET_TEST_MPIRUN", "mpirun"))


def kind_of_mpi():
    said = subprocess.run([MPIRUN, "--version"], capture_output=True, text=True, timeout=60).stdout
    return "Open MPI" if "Open MPI" in said or "OpenRTE" in said else "MPICH"


def why_not():
    gpus = count_gpus("cupy")
    if gpus < 2:
        return f"two GPUs are wanted, and there are {gpus}"
    if MPIRUN is None:
        return "there is no mpirun"
    said = subprocess.run([find_command(), "doctor", "--json"], timeout=100, capture_output=True,
                          text=True)
    note = next(e["note"] for e in json.loads(said.stdout)["engines"] if e["name"] == "mpi")
    knows = re.search(rf"\b{kind_of_mpi()}[^,]* says yes", note)
    return "" if knows else f"no MPI that knows CUDA: {note}"


WHY_NOT = why_not()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "-")


@pytest.mark.parametrize("ranks", [2] + [4] * (count_gpus("cupy") >= 4))
@pytest.mark.parametrize("part", ["movement", "order", "messages", "groups", "deadline", "stopped",
                                  "mismatch", "length", "capture", "death"])
def test_on_gpus(part, ranks):
    options = ["-n", str(ranks)]
    if kind_of_mpi() == "Open MPI":
        options += ["--allow-run-as-root", "--oversubscribe"]
    elif part == "death":
        pytest.skip("Hydra ends all ranks when one dies")
    done = subprocess.run(
        [MPIRUN, *options, sys.executable, PROGRAM, "cupy", part],
        # OMPI_MCA_plm: there need be no ssh.
        env=with_package(HOCKET_NCCL_LIBRARY="none", HOCKET_ENGINES="mpi", HOCKET_MPI_GPUS="auto",
                         HOCKET_TEST_HOSTS=str(ranks), HOCKET_LOG="debug", OMPI_MCA_plm="isolated",
                         OMPI_MCA_orte_abort_on_non_zero_status="0"),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=150)
    left = ranks - (part == "death")
    assert done.stdout.count(f"{part} done") == left, done.stdout
    assert "carries movement and messages of GPUs" in done.stdout, done.stdout
