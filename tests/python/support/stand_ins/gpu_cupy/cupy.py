"""A little of CuPy over the fake driver of tests/fake_cuda: arrays on GPUs that are none."""

import contextvars
import ctypes
import types

import fake_gpu
import numpy as np

fake_gpu._PROTOTYPES["cuCtxPopCurrent"] = [ctypes.c_void_p]
fake_gpu._PROTOTYPES["cuCtxGetDevice"] = [ctypes.c_void_p]
fake_gpu._PROTOTYPES["cuDeviceGetCount"] = [ctypes.c_void_p]
driver = fake_gpu.Driver()
_streams = contextvars.ContextVar("streams", default=())


class ndarray(fake_gpu.Array):
    """An array; `host` is its memory."""

    def __init__(self, values):
        super().__init__(driver, values)
        self.device = Device()

    dtype = property(lambda self: self.host.dtype)
    ndim = property(lambda self: self.host.ndim)
    # CuPy's flags have no `writeable`.
    flags = property(lambda self: types.SimpleNamespace(c_contiguous=self._c_contiguous,
                                                        f_contiguous=self._f_contiguous))
    # hocket reads these rather than the interface below, which is slow with CuPy.
    size = property(lambda self: self.host.size)
    data = property(lambda self: types.SimpleNamespace(ptr=self.address, device_id=self.device.id))
    _c_contiguous = property(lambda self: self.host.flags.c_contiguous)
    _f_contiguous = property(lambda self: self.host.flags.f_contiguous)

    @property
    def __cuda_array_interface__(self):
        return {**super().__cuda_array_interface__,
                "stream": get_current_stream(self.device.id).ptr or 1}

    def __setitem__(self, place, values):
        get_current_stream().synchronize()  # waits for the work that writes `values`
        self.host[place] = getattr(values, "host", values)

    def reshape(self, shape):
        assert tuple(shape) == self.host.shape
        return self

    def get(self):
        """A copy on the host, of what the current stream makes of it."""
        get_current_stream().synchronize()
        return self.host.copy()

    def astype(self, dtype):
        return ndarray(self.get().astype(dtype))


class Device:
    """A GPU; by default the current one."""

    def __init__(self, number=None):
        if number is None:
            found = ctypes.c_int()
            number = found.value if driver.cuCtxGetDevice(ctypes.byref(found)) == 0 else 0
        self.id = number

    def use(self):
        """The current one from now on."""
        driver.use(self.id)

    def __enter__(self):
        self.use()
        return self

    def __exit__(self, *_):
        assert driver.cuCtxPopCurrent(ctypes.byref(ctypes.c_void_p())) == 0


class ExternalStream:
    """A stream of somebody's, on a GPU."""

    def __init__(self, ptr, device_id=-1):
        self.ptr, self.device_id = ptr, device_id

    def __enter__(self):
        self.token = _streams.set((*_streams.get(), self))
        return self

    def __exit__(self, *_):
        _streams.reset(self.token)

    def synchronize(self):
        """Wait for all that it has."""
        with Device(self.device_id):
            driver.synchronize(self.ptr)


def get_current_stream(device_id=None):
    """The innermost one of the GPU, or its default stream."""
    number = Device().id if device_id is None else device_id
    for stream in reversed(_streams.get()):
        if stream.device_id == number:
            return stream
    return ExternalStream(0, number)


def stream_on(device):
    """A new stream."""
    with Device(device):
        return ExternalStream(driver.stream(), device)


def count_devices():
    """Returns the number of GPUs."""
    count = ctypes.c_int()
    assert driver.cuDeviceGetCount(ctypes.byref(count)) == 0
    return count.value


cuda = types.SimpleNamespace(Device=Device, ExternalStream=ExternalStream,
                             get_current_stream=get_current_stream,
                             runtime=types.SimpleNamespace(getDeviceCount=count_devices))


def empty(shape, dtype=float, order="C"):
    """A new array on the current GPU, of nonsense."""
    assert order == "C"
    return ndarray(np.full(shape, 99).astype(dtype))


def ascontiguousarray(array):
    """They all are."""
    return array


def asarray(values):
    """A copy on the current GPU of what the host has."""
    return ndarray(np.asarray(values))


def zeros(shape, dtype=float):
    """A new array on the current GPU."""
    return ndarray(np.zeros(shape, dtype))


def ones(shape, dtype=float):
    """Another."""
    return ndarray(np.ones(shape, dtype))
