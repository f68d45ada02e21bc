"""hocket as a backend of torch.distributed, on CPU tensors. Needs PyTorch."""

import os
import re
import shutil
import subprocess
import sys

import pytest
import torch_ranks

from hocket._command import find_command

pytest.importorskip("torch", reason="PyTorch is not installed")

from torch._C._distributed_c10d import ProcessGroup  # noqa: E402

from hocket.torch import HocketBackend  # noqa: E402


def run(name, n, folder, backend="hocket"):
    return torch_ranks.run("torch_programs.py", name, n, folder, backend)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("name", ["movement", "reductions", "sparse", "premultiplied"])
def test_collectives(name, n, tmp_path):
    run(name, n, tmp_path)


@pytest.mark.parametrize("name", ["layouts", "asynchronous", "messages", "groups", "coalesced"])
def test_what_else_there_is(name, tmp_path):
    run(name, 3, tmp_path)


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("name", ["anybody", "polling", "dropped", "futures_beside_calls"])
def test_handles(name, n, tmp_path):
    torch_ranks.run("torch_handles.py", name, n, tmp_path, "hocket")


@pytest.mark.parametrize("name", ["short_forms", "own_parts"])
def test_calls_of_groups_themselves_and_in_place(name, tmp_path):
    torch_ranks.run("torch_handles.py", name, 3, tmp_path, "hocket")


@pytest.mark.parametrize("name", ["in_pieces", "splits", "long_lists", "lazy_views"])
def test_splits_lists_and_views(name, tmp_path):
    torch_ranks.run("torch_handles.py", name, 3, tmp_path, "hocket")


def test_splits_of_a_group_that_is_bound(tmp_path):
    run("split_off", 2, tmp_path)


@pytest.mark.parametrize("name", ["coalescing", "again"])
def test_groups_and_batches(name, tmp_path):
    torch_ranks.run("torch_handles.py", name, 2, tmp_path, "hocket")


@pytest.mark.skipif(
    issubclass(HocketBackend, ProcessGroup), reason="has monitored_barrier for gloo alone"
)
def test_one_who_is_missing_is_named(tmp_path):
    outputs = torch_ranks.run("torch_handles.py", "monitored", 3, tmp_path, "hocket")
    assert outputs == ["missing: 2\n", "missing: 2\n", "DeadlineExceeded\n"]


def test_who_has_not_come_to_a_group_is_named(tmp_path):
    outputs = torch_ranks.run("torch_handles.py", "missing", 3, tmp_path, "hocket")
    assert "rank 1, 2 of 3 has not come within 0.5 s" in outputs[0]


def test_abort_by_pytorch(tmp_path):
    outputs = torch_ranks.run("torch_handles.py", "ended", 2, tmp_path, "hocket")
    assert outputs == ["aborted\n"] * 2


@pytest.mark.parametrize("backend", ["cpu:hocket,cuda:gloo", "cuda:gloo,cpu:hocket"])
def test_beside_gloo(backend, tmp_path):
    if issubclass(HocketBackend, ProcessGroup):
        with pytest.raises(AssertionError, match='"gloo": PyTorch .* takes only whole process gr'):
            torch_ranks.run("torch_handles.py", "beside_gloo", 2, tmp_path, backend)
        return
    torch_ranks.run("torch_handles.py", "beside_gloo", 3, tmp_path, backend)


@pytest.mark.parametrize(
    "name",
    ["waited_for_in_a_callback", "as_their_calls_end", "in_one_order", "attached_to_ended",
     "of_waited_for_calls", "what_fails"],
)
def test_futures(name, tmp_path):
    torch_ranks.run("torch_futures.py", name, 3, tmp_path, "hocket")


def test_the_end_waits_for_calls_and_raises_their_errors(tmp_path):
    outputs = torch_ranks.run(
        "torch_futures.py", "ended_with_calls_under_way", 2, tmp_path, "hocket"
    )
    assert outputs[0] == "given up\nmade\nraised True\n" and outputs[1].endswith("raised True\n"), outputs


def test_the_end_raises_nothing_twice(tmp_path):
    outputs = torch_ranks.run("torch_futures.py", "told_already", 2, tmp_path, "hocket")
    assert outputs == ["told\n"] * 2


@pytest.mark.parametrize("name", ["refused_by_one", "nothing_and_twice", "subgroups_are_named"])
def test_errors(name, tmp_path):
    torch_ranks.run("torch_errors.py", name, 3, tmp_path, "hocket")


@pytest.mark.skipif(
    issubclass(HocketBackend, ProcessGroup), reason="has monitored_barrier for gloo alone"
)
def test_monitored_barriers_of_subgroups_and_without_time(tmp_path):
    outputs = torch_ranks.run("torch_errors.py", "monitored", 3, tmp_path, "hocket")
    assert outputs[0].startswith("Rank 1 failed to pass monitoredBarrier: ")
    assert "did not finish within 0 s" not in outputs[0]


@pytest.mark.skipif(
    issubclass(HocketBackend, ProcessGroup), reason="has monitored_barrier for gloo alone"
)
def test_errors_begin_with_the_words_that_pytorch_s_tests_look_for(tmp_path):
    outputs = torch_ranks.run("torch_errors.py", "texts", 3, tmp_path, "hocket")
    first, every, barrier = outputs[0].splitlines()
    assert first.startswith("Rank 1 failed to pass monitoredBarrier: barrier #")
    assert every.startswith("Ranks 1, 2 failed to pass monitoredBarrier: barrier #")
    assert re.search(" (Timed out|closed|timeout) ", barrier) and "within 0.25 s" in barrier
    assert outputs[1].startswith(
        "Rank 1 successfully reached monitoredBarrier, but received errors while waiting for "
        "send/recv from rank 0: barrier #"
    )


def test_two_threads_are_told_to_use_two_groups(tmp_path):
    torch_ranks.run("torch_errors.py", "two_threads", 2, tmp_path, "hocket")


def test_a_profiler_sees_calls_with_their_shapes(tmp_path):
    outputs = torch_ranks.run("torch_errors.py", "spans", 2, tmp_path, "hocket")
    assert outputs[0].splitlines() == outputs[1].splitlines() == [
        "('hocket:all_gather', '[[2]]')",
        "('hocket:all_gather', '[[4]]')",
        "('hocket:all_reduce', '[[3, 5]]')",
        "('hocket:barrier', '[]')",
        "('hocket:broadcast', '[[3, 5]]')",
        "('hocket:recv', '[[7]]')",
        "('hocket:send', '[[7]]')",
    ]


@pytest.mark.skipif(
    issubclass(HocketBackend, ProcessGroup), reason="dist.barrier has no timeout there"
)
def test_calls_with_timeouts_of_their_own(tmp_path):
    torch_ranks.run("torch_errors.py", "calls_with_timeouts", 2, tmp_path, "hocket")


def losses_of(output):
    lines = [line.split() for line in output.splitlines()]
    return {name: losses for name, *losses in lines}


def test_communication_hooks_train_as_over_gloo(tmp_path):
    """With one bucket: gloo hangs where hooks make calls for several."""
    ours, theirs = (
        losses_of(torch_ranks.run("torch_hooks.py", "one_bucket", 2, tmp_path, backend)[0])
        for backend in ("hocket", "gloo")
    )
    assert ours.keys() == theirs.keys() and len(ours) > 10
    for name, losses in ours.items():
        if losses == ["AssertionError"]:  # an error of PyTorch 2.15's batched_powerSGD_hook
            assert theirs[name] == losses
            continue
        wanted = [float(loss) for loss in theirs[name]]
        assert [float(loss) for loss in losses] == pytest.approx(wanted, rel=1e-4), name


def test_communication_hooks_train_alike_with_many_buckets(tmp_path):
    outputs = torch_ranks.run("torch_hooks.py", "many_buckets", 2, tmp_path, "hocket")
    assert outputs[0] == outputs[1]
    for name, losses in losses_of(outputs[0]).items():
        assert losses == ["AssertionError"] or float(losses[-1]) < float(losses[0]), name


def test_ddp_s_logging_and_devices(tmp_path):
    run("named", 1, tmp_path)


def test_checkpoints_and_sharded_tensors(tmp_path):
    run("checkpoints", 2, tmp_path)


def test_refusals(tmp_path):
    for output in run("refusals", 2, tmp_path):
        assert output.split() == ["InvalidArgument"] * 3 + ["Mismatch"]


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


def test_training_with_uneven_work_goes_as_with_gloo(tmp_path):
    outputs = {name: run("uneven", 2, tmp_path, name) for name in ("hocket", "gloo")}
    for ours, theirs in zip(*outputs.values()):
        lines = [[float(loss) for loss in line.split()] for line in theirs.splitlines()]
        assert len(lines) == 2
        for line, wanted in zip(ours.splitlines(), lines):
            assert [float(loss) for loss in line.split()] == pytest.approx(wanted, rel=1e-5)


def test_compiled_modules_train_as_others(tmp_path):
    run("compiled", 2, tmp_path)


@pytest.mark.watchdog(300)
@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor compiles by g++")
def test_inductor_compiles_a_model_of_ddp(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(cache := tmp_path / "cache"))
    monkeypatch.setenv("TORCHINDUCTOR_COMPILE_THREADS", "1")
    run("inductor", 2, tmp_path)
    assert any(cache.rglob("*.so"))  # it has compiled something


def test_beside_another_backend(tmp_path):
    outputs = run("both_devices", 2, tmp_path, "cpu:hocket,cuda:hocket")
    assert all("cpu:hocket,cuda:hocket" in output for output in outputs)


LAUNCHED = """
import torch
import torch.distributed as dist
import hocket.torch

for _ in range(2):  # and again, in the same job
    dist.init_process_group("hocket", init_method="hocket://")
    rank, n = dist.get_rank(), dist.get_world_size()
    x = torch.full((3,), float(rank))
    dist.all_reduce(x)
    y = torch.full((2,), float(rank))
    dist.broadcast(y, 1, group=dist.new_group(backend="gloo"))
    assert x[0] == n * (n - 1) / 2 and y[0] == 1, (x, y)
    dist.destroy_process_group()
print("done")
"""


def test_under_hocket_run():
    command = [find_command(), "run", "-n", "2", "--bind", "none", "--"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    job = subprocess.run([*command, sys.executable, "-c", LAUNCHED], env=environment, timeout=55,
                         capture_output=True, text=True)
    assert job.returncode == 0, job.stdout + job.stderr
    assert job.stdout.count("done") == 2


def test_a_store_of_hocket_s_as_pytorch_s():
    from datetime import timedelta

    import torch.distributed as dist

    import hocket
    import hocket.torch

    server = hocket.StoreServer(address := f"unix:hocket-torch-store-{os.getpid()}")
    store = hocket.torch.HocketStore(hocket.connect_store(address), "p/")
    other = dist.PrefixStore("q", store)  # through PyTorch's own code
    other.set("a", "1")
    assert other.get("a") == b"1" and store.get("q/a") == b"1"
    assert other.add("n", 2) == 2 and other.add("n", 3) == 5
    assert other.check(["a"]) and not other.check(["a", "b"])
    assert other.compare_set("c", "", "x") == b"x"
    assert other.compare_set("c", "y", "z") == b"x" and other.get("c") == b"x"
    assert other.compare_set("c", "x", "z") == b"z" and other.get("c") == b"z"
    assert other.delete_key("a") and not other.delete_key("a")
    store.set_timeout(timedelta(seconds=0.05))
    with pytest.raises(Exception, match="q/b"):
        other.get("b")
    server.close()


OF_A_JOB = {"HOCKET_RANK": "0", "HOCKET_SIZE": "1", "HOCKET_STORE": "127.0.0.1:9"}


@pytest.mark.parametrize("missing", OF_A_JOB)
def test_hocket_s_address_outside_a_job(missing, monkeypatch):
    import torch.distributed as dist

    import hocket.torch  # noqa: F401

    for name, value in OF_A_JOB.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv(missing)
    with pytest.raises(RuntimeError, match=f"under `hocket run`, and {missing} is not set"):
        dist.init_process_group("hocket", init_method="hocket://")


def test_hocket_s_address_with_a_bad_setting(monkeypatch):
    import torch.distributed as dist

    import hocket.torch  # noqa: F401

    for name, value in {**OF_A_JOB, "HOCKET_TRUST_NETWORK": "yes"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match="HOCKET_TRUST_NETWORK=yes"):
        dist.init_process_group("hocket", init_method="hocket://")


def test_a_pytorch_that_is_too_old_is_named():
    program = (
        "import torch.distributed as dist\n"
        "dist.AllreduceOptions = object\n"
        "import hocket.torch\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert done.returncode == 1
    assert "hocket.torch needs PyTorch 2.11 or newer, and this is 2." in done.stderr, done.stderr
