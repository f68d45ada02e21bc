"""hocket as a backend of torch.distributed, on CPU tensors. Needs PyTorch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import hocket

pytest.importorskip("torch", reason="PyTorch is not installed")

PROGRAMS = Path(__file__).parent / "torch_programs.py"


def start(name, n, folder, backend="hocket"):
    package = str(Path(hocket.__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": package, "OMP_NUM_THREADS": "1"}
    return [
        subprocess.Popen(
            [sys.executable, PROGRAMS, name, str(rank), str(n), folder / backend, backend],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(n)
    ]


def run(name, n, folder, backend="hocket"):
    """The outputs of the ranks, all of which have ended well."""
    ranks = start(name, n, folder, backend)
    try:
        outputs = [rank.communicate(timeout=55) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    for rank, (process, output) in enumerate(zip(ranks, outputs)):
        assert process.returncode == 0, f"rank {rank}:\n{output[0]}{output[1][-3000:]}"
    return [output for output, _ in outputs]


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("name", ["movement", "reductions"])
def test_collectives(name, n, tmp_path):
    run(name, n, tmp_path)


@pytest.mark.parametrize("name", ["layouts", "asynchronous", "messages", "groups", "coalesced"])
def test_what_else_there_is(name, tmp_path):
    run(name, 3, tmp_path)


def test_refusals(tmp_path):
    for output in run("refusals", 2, tmp_path):
        assert output.split() == ["ValueError", "InvalidArgument", "Mismatch"]


def test_who_is_late_is_named(tmp_path):
    outputs = run("deadline", 2, tmp_path)
    assert outputs == ["late: (1,)\n", "DeadlineExceeded\n"]


def test_abort(tmp_path):
    assert run("aborts", 2, tmp_path) == ["aborted\n"] * 2


@pytest.mark.parametrize("name", ["ddp", "fsdp"])
def test_training_goes_as_with_gloo(name, tmp_path):
    losses = {}
    for backend in ("hocket", "gloo"):
        outputs = run(name, 2, tmp_path, backend)
        assert outputs[0] == outputs[1]
        losses[backend] = [float(loss) for loss in outputs[0].split()]
    assert losses["hocket"] == pytest.approx(losses["gloo"], rel=1e-5)
    assert losses["hocket"][-1] < losses["hocket"][0]


def test_beside_another_backend(tmp_path):
    outputs = run("both_devices", 2, tmp_path, "cpu:hocket,cuda:hocket")
    assert all("cpu:hocket,cuda:hocket" in output for output in outputs)
