"""Arrays in the memory of the fake driver's GPUs; for processes that run with that driver."""

import contextlib
import ctypes

import numpy as np

_PROTOTYPES = {
    "cuInit": [ctypes.c_uint],
    "cuDevicePrimaryCtxRetain": [ctypes.c_void_p, ctypes.c_int],
    "cuCtxPushCurrent": [ctypes.c_void_p],
    "cuMemAlloc": [ctypes.c_void_p, ctypes.c_size_t],
    "cuMemFree": [ctypes.c_uint64],
    "cuStreamCreate": [ctypes.c_void_p, ctypes.c_uint],
    "cuStreamSynchronize": [ctypes.c_void_p],
    "cuStreamBeginCapture": [ctypes.c_void_p, ctypes.c_int],
    "cuStreamEndCapture": [ctypes.c_void_p, ctypes.c_void_p],
    "cuStreamWaitValue32": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint],
    "cuGraphInstantiateWithFlags": [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64],
    "cuGraphLaunch": [ctypes.c_void_p, ctypes.c_void_p],
    "cuEventCreate": [ctypes.c_void_p, ctypes.c_uint],
    "cuEventRecord": [ctypes.c_void_p, ctypes.c_void_p],
    "cuStreamWaitEvent": [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint],
    "cuMemcpyAsync": [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p],
}


class Driver:
    """The functions that the tests need. Each thread has its own current device."""

    def __init__(self):
        library = ctypes.CDLL("libcuda.so.1")
        find = library.cuGetProcAddress_v2
        find.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64,
                         ctypes.c_void_p]
        for name, arguments in _PROTOTYPES.items():
            address = ctypes.c_void_p()
            assert find(name.encode(), ctypes.byref(address), 12000, 0, None) == 0, name
            setattr(self, name, ctypes.CFUNCTYPE(ctypes.c_int, *arguments)(address.value))
        assert self.cuInit(0) == 0
        self.kept = []

    def use(self, device):
        context = ctypes.c_void_p()
        assert self.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
        assert self.cuCtxPushCurrent(context) == 0

    def stream(self):
        stream = ctypes.c_void_p()
        assert self.cuStreamCreate(ctypes.byref(stream), 1) == 0
        return stream.value

    def copy(self, to, source, nbytes, stream):
        assert self.cuMemcpyAsync(to, source, nbytes, stream) == 0

    def order(self, earlier, later):
        """Makes later work on `later` wait for all work on `earlier`."""
        event = ctypes.c_void_p()
        assert self.cuEventCreate(ctypes.byref(event), 2) == 0
        assert self.cuEventRecord(event, earlier) == 0
        assert self.cuStreamWaitEvent(later, event, 0) == 0

    def fill_later(self, address, values, stream):
        """Puts a copy of `values` on the stream. It waits until the returned function is called."""
        source = Array(self, values)
        gate = Array(self, np.zeros(1, "uint32"))
        assert self.cuStreamWaitValue32(stream, gate.address, 1, 0) == 0
        self.copy(address, source.address, source.host.nbytes, stream)
        self.kept += [source, gate]  # freeing memory waits for all streams

        def go():
            gate.host[0] = 1

        return go

    @contextlib.contextmanager
    def captures(self):
        """A stream that is captured meanwhile, in the strictest mode; nothing may break that."""
        stream, graph = self.stream(), ctypes.c_void_p()
        assert self.cuStreamBeginCapture(stream, 0) == 0
        yield stream
        assert self.cuStreamEndCapture(stream, ctypes.byref(graph)) == 0, "the capture is broken"

    @contextlib.contextmanager
    def graph(self, stream):
        """Captures work on the stream into a graph; then the yielded list holds the function
        that replays it.
        """
        graph, replay, made = ctypes.c_void_p(), ctypes.c_void_p(), []
        assert self.cuStreamBeginCapture(stream, 1) == 0
        yield made
        assert self.cuStreamEndCapture(stream, ctypes.byref(graph)) == 0
        assert self.cuGraphInstantiateWithFlags(ctypes.byref(replay), graph, 0) == 0
        made.append(lambda: self.cuGraphLaunch(replay, stream))

    def synchronize(self, stream=None):
        assert self.cuStreamSynchronize(stream) == 0


class Array:
    """An array with CuPy's interface; `host` is the same memory, as the driver is fake."""

    def __init__(self, driver, values, stream=1):
        self.driver, self.stream = driver, stream
        values = np.ascontiguousarray(values)
        address = ctypes.c_uint64()
        assert driver.cuMemAlloc(ctypes.byref(address), max(values.nbytes, 1)) == 0
        self.address = address.value
        memory = (ctypes.c_char * values.nbytes).from_address(self.address)
        self.host = np.frombuffer(memory, values.dtype).reshape(values.shape)
        self.host[...] = values

    def __del__(self):
        self.driver.cuMemFree(self.address)

    @property
    def shape(self):
        return self.host.shape

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.host.shape, "typestr": self.host.dtype.str, "strides": None,
                "data": (self.address, False), "version": 3, "stream": self.stream}
