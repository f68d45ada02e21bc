"""Objects that count as arrays, and the error text for each that does not."""

import array
import ctypes

import ml_dtypes
import numpy as np
import pytest
from helpers import threads, values

import hocket


def on_two(body):
    threads(2, body)


def test_buffers():
    def body(comm):
        raw = bytearray([1, 2, comm.rank])
        assert comm.all_reduce(raw) is raw
        assert raw == bytearray([2, 4, 1])
        numbers = array.array("d", [0.5, comm.rank])
        comm.all_reduce(numbers)
        assert numbers.tolist() == [1.0, 1.0]
        shorts = array.array("h", [-3, comm.rank])
        comm.all_reduce(memoryview(shorts), op="min")
        assert shorts.tolist() == [-3, 0]
        c_array = (ctypes.c_int32 * 3)(1, 2, comm.rank)
        comm.all_reduce(c_array)
        assert list(c_array) == [2, 4, 1]
        gathered = comm.all_gather(bytes([comm.rank + 7]))
        assert gathered.dtype == np.uint8 and gathered.tolist() == [[7], [8]]

    on_two(body)


def test_layouts():
    def body(comm):
        x = np.asfortranarray(values(comm.rank, (4, 5), "float32"))
        out = np.empty((4, 5), "float32", order="F")
        wanted = values(0, (4, 5), "float32") + values(1, (4, 5), "float32")
        assert np.array_equal(comm.all_reduce(x, out=out), wanted)
        assert np.array_equal(comm.all_reduce(x), wanted)
        with pytest.raises(hocket.InvalidArgument, match="differ in order"):
            comm.all_reduce(x, out=np.empty((4, 5), "float32"))
        with pytest.raises(hocket.InvalidArgument, match="x is in Fortran order"):
            comm.all_gather(x)
        with pytest.raises(hocket.InvalidArgument, match="x is not contiguous"):
            comm.all_reduce(np.zeros((6, 6))[:, ::2])
        zero_d = np.array(2.5 + comm.rank)
        assert comm.all_reduce(zero_d) is zero_d and zero_d == 6.0
        assert comm.all_gather(np.array(comm.rank)).tolist() == [0, 1]
        assert comm.all_reduce(np.zeros((0, 3))).shape == (0, 3)

    on_two(body)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: "3.0", "x is a str, not an array$"),
        (lambda: [1, 2], "x is a list, not an array.*numpy.array"),
        (lambda: None, "x is None"),
        (lambda: np.broadcast_to(np.zeros(1), 1), "x is read-only"),
        (lambda: bytes(3), "x is read-only"),
        (lambda: np.zeros(3, ">f4"), "byte-swapped"),
        (lambda: np.zeros(3, "M8[s]"), "datetime64"),
        (lambda: np.zeros(3, object), "object"),
        (lambda: np.zeros(3, "f4,i4"), "dtype"),
        (lambda: np.zeros(3, "longdouble"), "longdouble|float128"),
        (lambda: np.zeros(3, ml_dtypes.float8_e4m3b11fnuz), "float8_e4m3b11fnuz"),
    ],
)
def test_refused(make, words):
    def body(comm):
        with pytest.raises(hocket.InvalidArgument, match=words) as caught:
            comm.all_reduce(make())
        assert isinstance(caught.value, ValueError)
        x = np.array(comm.rank)
        assert comm.all_reduce(x) == 1  # still good

    on_two(body)


def test_refused_options():
    def body(comm):
        x = np.zeros(3)
        with pytest.raises(hocket.InvalidArgument, match="median"):
            comm.all_reduce(x, op="median")
        with pytest.raises(hocket.InvalidArgument, match="op is an int"):
            comm.all_reduce(x, op=3)
        with pytest.raises(hocket.InvalidArgument, match="deadline"):
            comm.all_reduce(x, timeout="soon")
        with pytest.raises(hocket.InvalidArgument, match="deadline"):
            comm.all_reduce(x, timeout=-1)
        with pytest.raises(hocket.InvalidArgument, match="4 elements"):
            comm.all_reduce(x, out=np.zeros(4))
        with pytest.raises(hocket.InvalidArgument, match="root"):
            comm.broadcast(x, root=2)

    on_two(body)


class Legacy:
    """DLPack as before version 1.0: no max_version, no read-only flag."""

    def __init__(self, array):
        self.array = array

    @property
    def shape(self):
        return self.array.shape

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Versioned(Legacy):
    """DLPack of version 1."""

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return self.array.__dlpack__(max_version=max_version)


class OnGpu:
    """Says that it is on a GPU."""

    def __init__(self, array):
        self.array = array

    @property
    def __cuda_array_interface__(self):
        return {**self.array.__array_interface__, "version": 3, "stream": 1}


@pytest.mark.parametrize("kind", [Legacy, Versioned])
def test_dlpack(kind):
    def body(comm):
        x = values(comm.rank, (3, 4), "int32")
        assert isinstance(comm.all_reduce(holder := kind(x)), kind)
        assert holder.array is x
        assert np.array_equal(x, values(0, (3, 4), "int32") + values(1, (3, 4), "int32"))
        assert comm.all_gather(kind(x)).shape == (2, 3, 4)
        with pytest.raises(hocket.InvalidArgument, match="not contiguous"):
            comm.all_reduce(kind(np.zeros((4, 4))[:, :2]))
        if kind is Versioned:
            frozen = np.zeros(3)
            frozen.flags.writeable = False
            with pytest.raises(hocket.InvalidArgument, match="read-only"):
                comm.all_reduce(kind(frozen))

    on_two(body)


def test_a_gpu_that_is_not_there():
    def body(comm):
        with pytest.raises(hocket.InvalidArgument, match="GPU"):
            comm.all_reduce(OnGpu(np.zeros(3)))

    on_two(body)


class Tensor(ctypes.Structure):
    """DLPack's tensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


VIEW = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))


class Exchange(ctypes.Structure):
    """DLPack's table of functions that a type offers."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("export", ctypes.c_void_p),
        ("import_", ctypes.c_void_p),
        ("view", VIEW),
        ("stream", ctypes.c_void_p),
    ]


@VIEW
def view_tensor(holder, out):
    tensor = out[0]
    tensor.data = holder.array.ctypes.data
    tensor.device_type, tensor.ndim = 1, 1
    tensor.code, tensor.bits, tensor.lanes = 2, 32, 1
    tensor.shape = holder.extents
    tensor.strides = None
    tensor.byte_offset = 4  # skips the first element
    return 0


EXCHANGE = Exchange(major=1, minor=3, view=view_tensor)
CAPSULE_NAME = b"dlpack_exchange_api"  # capsules keep the pointer, not the bytes
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Exchanged:
    """A type that offers DLPack's C exchange interface, and nothing slower."""

    __dlpack_c_exchange_api__ = new_capsule(ctypes.addressof(EXCHANGE), CAPSULE_NAME, None)

    def __init__(self, array):
        self.array = array
        self.extents = (ctypes.c_int64 * 1)(array.size - 1)


def test_dlpack_exchange():
    def body(comm):
        x = Exchanged(values(comm.rank, 6, "float32"))
        first = x.array[0]
        assert comm.all_reduce(x) is x
        assert x.array[0] == first
        assert np.array_equal(x.array[1:], (values(0, 6, "float32") + values(1, 6, "float32"))[1:])

    on_two(body)


def test_views_that_torch_conjugates_when_it_reads_them():
    """Their memory holds other numbers than they do."""
    torch = pytest.importorskip("torch")

    def body(comm):
        x = torch.tensor([1 + 2j, 3 - 1j])
        with pytest.raises(hocket.InvalidArgument, match=r"y = x.resolve_conj\(\)"):
            comm.all_reduce(x.conj(), out=torch.zeros(2, dtype=torch.complex64))
        with pytest.raises(hocket.InvalidArgument, match=r"holds a .*Tensor: .* y = x.resolve_conj\(\)"):
            comm.all_gather_object([x.conj()])
        part = x.conj().imag[1:]
        with pytest.raises(hocket.InvalidArgument, match=r"y = x.resolve_neg\(\)"):
            comm.all_reduce(part, out=torch.zeros(1))
        assert comm.all_reduce(part.resolve_neg(), out=torch.zeros(1)).tolist() == [2]
        assert comm.all_reduce(x.imag[1:], out=torch.zeros(1)).tolist() == [-2]
        total = comm.all_reduce(x.conj().resolve_conj())
        assert total.tolist() == [2 - 4j, 6 + 2j]

    threads(2, body)


class LazilyNegated:
    """As a tensor of PyTorch that is negated when it is read (`torch._neg_view`), or conjugated."""

    def __init__(self, array, bit):
        self._array, self._bit = array, bit
        self.shape, self.dtype = array.shape, array.dtype

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()

    def is_neg(self):
        return self._bit == "neg"

    def is_conj(self):
        return self._bit == "conj"


@pytest.mark.parametrize(
    "bit, dtype", [("neg", "float32"), ("neg", "int64"), ("neg", "complex64"), ("conj", "complex64")]
)
def test_a_whole_array_that_is_negated_when_it_is_read(bit, dtype):
    def body(comm):
        x = LazilyNegated(np.arange(4).astype(dtype), bit)
        for call in (comm.all_reduce, comm.broadcast, comm.all_gather, comm.reduce_scatter):
            with pytest.raises(hocket.InvalidArgument, match=rf"y = x.resolve_{bit}\(\)"):
                call(x)
        with pytest.raises(hocket.InvalidArgument, match=rf"y = out.resolve_{bit}\(\)"):
            comm.all_reduce(np.zeros(4, dtype), out=x)
        with pytest.raises(hocket.InvalidArgument, match=rf"y = x.resolve_{bit}\(\)"):
            comm.send(x, 1 - comm.rank)
        assert comm.all_reduce(LazilyNegated(np.ones(2, dtype), ""))._array[0] == 2

    threads(2, body)


def test_whole_tensors_that_torch_negates_when_it_reads_them():
    torch = pytest.importorskip("torch")

    def body(comm):
        x = torch._neg_view(torch.ones(3))
        with pytest.raises(hocket.InvalidArgument, match=r"y = x.resolve_neg\(\)"):
            comm.all_reduce(x)
        assert comm.all_reduce(x.resolve_neg()).tolist() == [-2] * 3

    threads(2, body)


def test_torch():
    torch = pytest.importorskip("torch")

    def body(comm):
        x = torch.arange(6, dtype=torch.bfloat16).reshape(2, 3) + comm.rank
        assert comm.all_reduce(x) is x
        assert x.flatten().tolist() == [1, 3, 5, 7, 9, 11]
        gathered = comm.all_gather(torch.tensor([comm.rank, 5]))
        assert isinstance(gathered, torch.Tensor) and gathered.tolist() == [[0, 5], [1, 5]]
        with pytest.raises(hocket.InvalidArgument, match="not contiguous"):
            comm.all_reduce(torch.zeros(4, 4)[:, ::2])

    on_two(body)


def test_jax():
    jnp = pytest.importorskip("jax.numpy")

    def body(comm):
        x = jnp.arange(4, dtype="float32") + comm.rank
        out = np.empty(4, "float32")
        assert comm.all_reduce(x, out=out).tolist() == [1, 3, 5, 7]
        assert comm.all_reduce(x).tolist() == [1, 3, 5, 7]
        assert x.tolist() == [comm.rank + i for i in range(4)]  # JAX's arrays never change

    on_two(body)
