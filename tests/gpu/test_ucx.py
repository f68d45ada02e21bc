"""Arrays in GPUs' memory between pretended hosts, by a UCX that was built for CUDA, without NCCL: run
by tools/check/gpu_check.sh."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from gpu_packages import count_gpus
from processes import with_package

from hocket._command import find_command

PROGRAM = Path(__file__).parent / "moves_on_gpus.py"


def library():
    """Named by HOCKET_UCX_LIBRARY, or in Python's package; None: the system's."""
    named = os.environ.get("HOCKET_UCX_LIBRARY")
    packaged = [Path(folder) / "libucx/lib/libucp.so.0" for folder in sys.path]
    return named or next((str(file) for file in packaged if file.exists()), None)


def environment(hosts):
    found = library()
    return with_package(HOCKET_NCCL_LIBRARY="none", HOCKET_UCX_GPUS="auto",
                        HOCKET_TEST_HOSTS=str(hosts),
                        **{"HOCKET_UCX_LIBRARY": found} if found else {})


def why_not():
    gpus = count_gpus("cupy")
    if gpus < 2:
        return f"two GPUs are wanted, and there are {gpus}"
    said = subprocess.run([find_command(), "doctor", "--json"], env=environment(2), timeout=100,
                          capture_output=True, text=True)
    ucx = next(e for e in json.loads(said.stdout)["engines"] if e["name"] == "ucx")
    return "" if ucx["available"] and "GPU memory" in ucx["note"] else ucx["note"]


WHY_NOT = why_not()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "-")


@pytest.mark.parametrize("ranks", [2] + [4] * (count_gpus("cupy") >= 4))
@pytest.mark.parametrize("part", ["movement", "order", "messages", "deadline", "capture", "death"])
def test_on_gpus(part, ranks):
    done = subprocess.run(
        [find_command(), "run", "-n", str(ranks), "--keep-going", "--", sys.executable, PROGRAM,
         "cupy", part],
        env={**environment(ranks), "HOCKET_LOG": "debug"}, timeout=150,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    left = ranks - (part == "death")
    assert done.stdout.count(f"{part} done") == left, done.stdout
    assert "carries movement and messages of GPUs" in done.stdout, done.stdout
