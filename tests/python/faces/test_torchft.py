"""hocket's process group for torchft. Needs PyTorch and torchft."""

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from processes import with_package

import hocket

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torchft", reason="torchft is not installed")

from torch.distributed import AllreduceOptions, TCPStore  # noqa: E402

from hocket.torch.torchft import ProcessGroupHocket  # noqa: E402

ROOT = Path(__file__).parent.parent.parent.parent


@pytest.fixture
def address():
    store = TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    yield f"localhost:{store.port}/first"


def test_a_group_of_one_is_configured_again_and_again(address):
    group = ProcessGroupHocket(timedelta(seconds=5))
    for turn in range(3):
        group.configure(f"{address}{turn}", "0", 0, 1)
        x = torch.ones(3)
        assert group.allreduce([x], AllreduceOptions()).wait() and x.tolist() == [1, 1, 1]
        assert group.size() == 1 and group.errored() is None
    assert group.getBackendName() == "torchft-hocket"
    group.shutdown()


def test_an_abort_is_told_by_the_future_and_the_group_can_be_configured_again(address):
    group = ProcessGroupHocket(timedelta(seconds=5))
    group.configure(address, "0", 0, 1)
    group._backend.abort()
    work = group.allreduce([torch.ones(3)], AllreduceOptions())
    assert work.wait() is False and work.is_completed() and not work.is_success()
    assert isinstance(work.exception(), hocket.Aborted)
    with pytest.raises(RuntimeError, match="abort"):
        work.get_future().wait()
    with pytest.raises(hocket.Aborted):  # other calls raise
        group.broadcast_one(torch.ones(1), 0).wait()
    assert str(group.errored()).startswith("aborted: ")
    group.configure(f"{address}/second", "0", 0, 1)
    assert group.errored() is None and group.allreduce([torch.ones(3)], AllreduceOptions()).wait()


def test_who_does_not_come_is_named(address):
    group = ProcessGroupHocket(timedelta(seconds=0.5))
    words = "Socket Timeout: rank 1 of 2 has not come within 0.5"
    with pytest.raises(hocket.RendezvousError, match=words):
        group.configure(address, "0", 0, 2)


def test_replicas_are_killed_and_the_losses_stay():
    environment = with_package(OMP_NUM_THREADS="1")
    program = ROOT / "examples" / "torchft_training.py"
    command = [sys.executable, program, "--replicas", "2", "--kills", "1"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=55)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    assert "1 replicas killed" in done.stdout
