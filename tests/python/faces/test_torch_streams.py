"""Streams that calls on CUDA tensors use, and the work that they and `wait` come after. Needs
PyTorch, and no GPU: see torch_streams.py.
"""

import sys
from datetime import timedelta
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch._C._distributed_c10d import (  # noqa: E402
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
)
from torch_streams import Gpu, Stream, Tensor  # noqa: E402

import hocket  # noqa: E402
from hocket.torch._ops import op_of  # noqa: E402
from hocket.torch._fast_path import FastPath as Calls  # noqa: E402
from hocket.torch._streams import OnStream  # noqa: E402
from hocket.torch._verbs import Batch  # noqa: E402


@pytest.fixture
def gpu(monkeypatch):
    return Gpu(monkeypatch)


def options(is_async, kind=AllreduceOptions):
    made = kind()
    made.asyncOp = is_async
    return made


def test_an_async_call_comes_after_the_caller_and_waits_bring_others_behind_it(gpu):
    calls, x = Calls(gpu), Tensor.of([1.0, 2.0])
    caller, reader = gpu.stream, Stream()
    caller.put("write")
    handle = calls.allreduce([x], options(True))
    (made,) = gpu.calls
    assert made.name == "all_reduce_async" and made.stream is not caller
    assert "write" in made.before
    caller.put("more of the caller's")  # which runs beside the call
    assert made.number not in caller.before and "more of the caller's" not in made.stream.before
    gpu.stream = reader
    assert made.number not in reader.before
    assert handle.wait()
    assert made.number in reader.put("read") and made.number not in caller.before
    assert made.stream in x.users  # its memory is not given to others before


def test_async_calls_of_a_group_share_a_stream_and_groups_do_not(gpu):
    one, other, x = Calls(gpu), Calls(gpu), Tensor.of([1.0])
    for calls in (one, one, other):
        calls.allreduce([x], options(True))
    first, second, third = (made.stream for made in gpu.calls)
    assert first is second and first is not third
    assert gpu.calls[0].number in gpu.calls[1].before


def test_a_blocking_call_goes_on_the_caller_s_stream(gpu):
    calls, x = Calls(gpu), Tensor.of([1.0])
    handle = calls.allreduce([x], options(False))
    (made,) = gpu.calls
    assert made.name == "all_reduce" and made.stream is gpu.stream
    gpu.stream = Stream()
    handle.wait()
    assert made.number in gpu.stream.before


def test_a_tensor_goes_as_it_is_and_is_marked_as_used_once(gpu):
    calls, x = Calls(gpu), Tensor.of([[1.0, 2.0], [3.0, 4.0]])
    calls.allreduce([x], options(True))
    (made,) = gpu.calls
    assert made.arguments == (x, None, "sum")  # no view, which takes longer to make than to pass on
    assert x.users == [made.stream]


def test_a_blocking_call_that_python_makes_gives_nothing_back(gpu):
    calls, x = Calls(gpu), Tensor.of([1.0])
    calls.is_called_directly = True
    assert calls.allreduce([x], options(False)) is None
    assert gpu.calls[0].stream is gpu.stream
    calls.made.collected, calls.is_collecting = [], 1
    assert calls.allreduce([x], options(False)) in calls.made.collected  # one handle is of all


def test_a_future_comes_after_its_call_and_leaves_the_current_stream_as_it_is(gpu):
    calls, x, caller = Calls(gpu), Tensor.of([1.0]), gpu.stream
    future = calls.allreduce([x], options(True)).get_future()
    (made,) = gpu.calls
    assert future.value == [x] and made.number in future.end.before
    assert gpu.stream is caller and made.number not in caller.before


def called(function):
    """The names of the functions of hocket.torch that `function` calls."""
    names, package = [], str(Path(hocket.torch.__file__).parent)

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(package):
            names.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return names


def test_an_async_call_of_one_dense_tensor_takes_the_fast_path(gpu):
    # Each function that is called with cold caches costs microseconds: no others may slip in.
    calls, x, asked = Calls(gpu), Tensor.of([1.0]), options(True)
    made = []
    calls.allreduce([x], asked)  # makes the stream
    names = called(lambda: made.append(calls.allreduce([x], asked)))
    assert names == ["allreduce", "current_stream"]
    assert called(lambda: made[0].get_future()) == ["get_future"]


def test_other_forms_and_tensors_take_the_whole_path(gpu):
    calls, x = Calls(gpu), Tensor.of([[1.0, 2.0], [3.0, 4.0]])
    several, asked = options(True), options(True)
    several.reduceOp = torch.distributed._make_nccl_premul_sum(2.0)
    for tensor, how in [(x.t(), asked), (x, several), (torch._neg_view(x), asked)]:
        names = called(lambda tensor=tensor, how=how: calls.allreduce([tensor], how))
        assert "_on_gpu" in names and gpu.calls[-1].name == "all_reduce_async"
    calls.is_called_directly = True  # a batch has one handle, which knows of all calls
    calls.made.collected, calls.is_collecting = [], 1
    handle = calls.allreduce([x], asked)
    assert calls.made.collected == [handle]


def test_each_reduction_has_its_name():
    asked = AllreduceOptions()
    for name in ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"):
        asked.reduceOp = getattr(torch.distributed.ReduceOp, name)
        assert op_of(asked) == name.lower()
    asked.reduceOp = torch.distributed._make_nccl_premul_sum(2.0)
    assert op_of(asked) is None


def test_what_brings_results_back_comes_before_the_handle_s_end(gpu, monkeypatch):
    calls = Calls(gpu)
    parts = [Tensor.of(torch.zeros(2)) for _ in range(2)]
    streams = []
    copied = torch.Tensor.copy_

    def copy(self, *arguments, **named):
        streams.append(gpu.stream)
        gpu.stream.put("copy")
        return copied(self, *arguments, **named)

    monkeypatch.setattr(Tensor, "copy_", copy)
    made_flat = torch.empty
    monkeypatch.setattr(  # a flat tensor for what comes
        torch, "empty", lambda *shape, dtype, device: Tensor.of(made_flat(*shape, dtype=dtype).zero_())
    )
    handle = calls.allgather([parts], [Tensor.of([1.0, 2.0])], options(True, AllgatherOptions))
    (made,) = gpu.calls
    assert streams == [made.stream] * 2
    handle.wait()
    assert {"copy", made.number} <= gpu.stream.before
    (flat,) = (one for one in made.arguments if isinstance(one, Tensor) and one.numel() == 4)
    assert made.stream in flat.users


def test_handles_say_whether_the_call_has_ended(gpu):
    calls, x = Calls(gpu), Tensor.of([1.0])
    handle = calls.allreduce([x], options(True))
    assert not handle.is_completed() and not handle.is_success()
    with pytest.raises(TimeoutError, match="still under way"):
        handle.wait(timedelta(milliseconds=5))
    handle.work.mark.has_passed = True
    assert handle.is_completed() and handle.is_success() and handle.wait(timedelta(seconds=5))
    blocking = calls.allreduce([x], options(False))
    assert not blocking.is_completed() and not blocking.is_success()
    blocking.end.has_passed = True
    assert blocking.is_success() and blocking.exception() is None


def test_handles_say_what_has_gone_wrong(gpu):
    calls, x = Calls(gpu), Tensor.of([1.0])
    handles = [calls.allreduce([x], options(is_async)) for is_async in (True, False)]
    gpu.status = hocket.Status("peer_died", "rank 1 died", peer=1)
    gpu.failure = hocket.PeerDied("rank 1 died")
    for handle in handles:
        with pytest.raises(hocket.PeerDied, match="rank 1 died"):
            handle.wait()
        assert isinstance(handle.exception(), hocket.PeerDied)
    handles[0].work.mark.has_passed = True
    assert handles[0].is_completed() and not handles[0].is_success()


def test_captured_calls_are_ordered_within_their_graph(gpu):
    calls, x = Calls(gpu), Tensor.of([1.0])
    calls.allreduce([x], options(True)).wait()  # before: the stream is there
    gpu.stream.graph = "graph"
    handle = calls.allreduce([x], options(True))
    made = gpu.calls[-1]
    assert made.stream.graph == "graph" and made.number not in gpu.stream.before
    calls.allreduce([x], options(False))  # hocket orders no calls of one graph
    assert made.number in gpu.calls[-1].before and gpu.calls[-1].stream is gpu.stream
    gpu.stream.before.clear()
    handle.wait()
    assert made.number in gpu.stream.before
    with pytest.raises(RuntimeError, match="captured into a graph"):
        handle.is_completed()


def test_coalesced_calls_and_batches_go_there_too(gpu):
    calls, x, y = Calls(gpu), Tensor.of([1.0]), Tensor.of([2.0])
    calls._comm.rank = 0
    handle = calls.allreduce_coalesced([x, y], options(True, AllreduceCoalescedOptions))
    (made,) = gpu.calls
    assert made.name == "all_reduce_coalesced" and made.stream is not gpu.stream
    handle.wait()
    assert made.number in gpu.stream.before
    gpu.stream.put("write")
    calls.made.batch = batch = Batch(calls)
    works = [calls.send([x], 1, 0), calls.recv([y], 1, 0)]
    calls.made.batch = None
    batch.go()
    exchange = gpu.calls[-1]
    assert exchange.name == "exchange" and "write" in exchange.before
    assert exchange.stream in x.users and exchange.stream in y.users
    for work in works:
        assert isinstance(work, OnStream) and not work.is_completed()
        gpu.stream = Stream()
        work.wait()
        assert exchange.number in gpu.stream.before
    alone = calls.send([x], 1, 0)
    assert gpu.calls[-1].name == "send_async" and gpu.calls[-1].stream is exchange.stream
    gpu.stream = Stream()
    alone.wait()
    assert gpu.calls[-1].number in gpu.stream.before
