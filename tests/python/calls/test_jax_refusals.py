"""JAX objects that are not arrays, or no longer: both ranks get the reason."""

import numpy as np
import pytest
from helpers import threads

import hocket


def refused(comm, x, words):
    """On rank 0, which alone has `x`; rank 1 hears of it."""
    with pytest.raises(hocket.InvalidArgument, match=words):
        comm.all_reduce(x if comm.rank == 0 else np.ones(3))
    comm.barrier()


def gone(*_, **__):
    raise RuntimeError("Array has been deleted")


def test_a_tracer_is_told_from_an_array():
    tracer = type("Tracer", (), {"__module__": "jax._src.core", "__dlpack__": gone})
    special = type("DynamicJaxprTracer", (tracer,), {"__module__": "jax._src.interpreters"})
    threads(2, lambda comm: refused(comm, special(), "x is a tracer of JAX"))


def test_a_deleted_array_is_called_so():
    own = {"__module__": "builtins", "__dlpack__": gone, "is_deleted": lambda self: True}
    array = type("jaxlib.ArrayImpl", (), own)
    threads(2, lambda comm: refused(comm, array(), "x is an array of JAX that has been deleted"))


def test_with_jax_itself():
    jax = pytest.importorskip("jax")

    def body(comm):
        x = jax.numpy.ones(3)
        x.delete()
        refused(comm, x, "x is an array of JAX that has been deleted")
        if comm.rank == 0:
            with pytest.raises(hocket.InvalidArgument, match="x is a tracer of JAX"):
                jax.jit(lambda x: comm.all_reduce(x))(jax.numpy.ones(3))
        else:
            with pytest.raises(hocket.InvalidArgument, match="a tracer of JAX"):
                comm.all_reduce(np.ones(3))
        comm.barrier()

    threads(2, body)
