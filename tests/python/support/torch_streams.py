"""Streams and tensors of a pretended GPU: they record which work comes after which.

This is as much of torch.cuda as hocket.torch needs, for one GPU.
"""

import contextlib
from types import SimpleNamespace

import torch

from hocket.torch import _fast_path, _streams, _verbs

DEVICE = SimpleNamespace(type="cuda", index=0)


class Event:
    def __init__(self, before=()):
        self.before = frozenset(before)
        self.has_passed = False

    @staticmethod
    def record(event, stream):
        event.before, event.graph = frozenset(stream.before), stream.graph

    @staticmethod
    def hold(event, stream):
        stream.wait_event(event)

    def query(self):
        return self.has_passed


class Stream:
    """`before` is the work that precedes everything put on the stream from now on."""

    def __init__(self, device=0):
        self.device, self.device_index, self.device_type = DEVICE, device, 1
        self.stream_id = self.cuda_stream = self
        self.before = set()
        self.graph = None  # the graph into which it is captured

    def put(self, what):
        self.before.add(what)
        return frozenset(self.before)

    def record_event(self):
        event = Event(self.before)
        event.graph = self.graph
        return event

    def wait_event(self, event):
        if getattr(event, "graph", None) is not None:
            self.graph = event.graph  # it joins the capture
        self.before |= event.before

    def wait_stream(self, other):
        self.wait_event(other.record_event())

    def is_capturing(self):
        return self.graph is not None

    def synchronize(self):
        pass


class Tensor(torch.Tensor):
    """In the host's memory, but it says that it is on the GPU, and which streams have used it."""

    is_cuda = True
    device = DEVICE

    def get_device(self):
        return DEVICE.index

    @staticmethod
    def of(values):
        tensor = torch.Tensor._make_subclass(Tensor, torch.as_tensor(values))
        tensor.users = []
        return tensor

    def record_stream(self, stream):
        self.__dict__.setdefault("users", []).append(stream)


class Gpu:
    """The GPU, and `comm`, whose calls record their stream and the work that they follow."""

    def __init__(self, monkeypatch):
        self.stream = Stream()  # the current one
        self.calls = []
        self.status = None
        self.rank, self.size, self.deadline, self.name = 0, 2, 30.0, "world"
        for name in ("Stream", "current_stream", "stream"):
            monkeypatch.setattr(torch.cuda, name, getattr(self, "_" + name))
        monkeypatch.setattr(torch.cuda, "Event", Event)
        monkeypatch.setattr(_streams, "_known", {})
        for name, function in {
            "_current_device": lambda: DEVICE.index,
            "_current_stream": lambda device: (self.stream, device, 1),
            "_set_stream": self._set_stream,
            "_Future": lambda devices: Future(self, devices),
        }.items():
            monkeypatch.setattr(_streams, name, function)
        for module in (_streams, _fast_path):
            monkeypatch.setattr(module, "record", Event.record)
            monkeypatch.setattr(module, "hold", Event.hold)
        for module in (_streams, _fast_path, _verbs):
            monkeypatch.setattr(module, "is_current_capturing", lambda: self.stream.is_capturing())

    def _Stream(self, device):
        return Stream(device)

    def _current_stream(self, device):
        return self.stream

    def _set_stream(self, stream, _device, _kind):
        self.stream = stream

    @contextlib.contextmanager
    def _stream(self, stream):
        self.stream, before = stream, self.stream
        try:
            yield
        finally:
            self.stream = before

    def __getattr__(self, name):
        if name.startswith("_") or name.endswith("_coalesced_async"):
            raise AttributeError(name)

        def call(*arguments, stream=None):
            if len(arguments) == 5:  # the stream follows the deadline
                *arguments, _, stream = arguments
            stream = stream or self.stream
            number = f"call {len(self.calls)}"
            made = SimpleNamespace(
                name=name, arguments=tuple(arguments), stream=stream, number=number, before=set(stream.before)
            )
            stream.put(number)
            self.calls.append(made)
            return Work(self, stream) if name.endswith("_async") else None

        return call


class Future:
    """A future that is complete at once. Its `end` is an event on the current stream."""

    def __init__(self, gpu, devices):
        assert devices == [DEVICE]
        self._gpu = gpu

    def set_result(self, value):
        self.value, self.end = value, self._gpu.stream.record_event()


class Work:
    """Stands for hocket.Work: a mark behind the call on its stream."""

    def __init__(self, gpu, stream):
        self._gpu = gpu
        self.mark = stream.record_event()
        self._is_captured = stream.is_capturing()
        self.received = None

    def wait(self, stream):
        if self._gpu.status is not None:
            raise self._gpu.failure
        if not self._is_captured:  # hocket has no marks in graphs
            stream.wait_event(self.mark)

    def test(self):
        return self.mark.query()
