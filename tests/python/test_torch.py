"""hocket as a backend of torch.distributed, on CPU tensors. Needs PyTorch."""

import pytest
import torch_ranks

pytest.importorskip("torch", reason="PyTorch is not installed")


def run(name, n, folder, backend="hocket"):
    return torch_ranks.run("torch_programs.py", name, n, folder, backend)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("name", ["movement", "reductions"])
def test_collectives(name, n, tmp_path):
    run(name, n, tmp_path)


@pytest.mark.parametrize("name", ["layouts", "asynchronous", "messages", "groups", "coalesced"])
def test_what_else_there_is(name, tmp_path):
    run(name, 3, tmp_path)


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("name", ["anybody", "polling", "futures_beside_calls"])
def test_handles(name, n, tmp_path):
    torch_ranks.run("torch_handles.py", name, n, tmp_path, "hocket")


@pytest.mark.parametrize("name", ["coalescing", "again"])
def test_groups_and_batches(name, tmp_path):
    torch_ranks.run("torch_handles.py", name, 2, tmp_path, "hocket")


def test_one_who_is_missing_is_named(tmp_path):
    outputs = torch_ranks.run("torch_handles.py", "monitored", 3, tmp_path, "hocket")
    assert outputs == ["missing: 2\n", "missing: 2\n", "DeadlineExceeded\n"]


def test_abort_by_pytorch(tmp_path):
    outputs = torch_ranks.run("torch_handles.py", "ended", 2, tmp_path, "hocket")
    assert outputs == ["aborted\n"] * 2


def test_beside_gloo(tmp_path):
    torch_ranks.run("torch_handles.py", "beside_gloo", 2, tmp_path, "cpu:hocket,cuda:gloo")


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
