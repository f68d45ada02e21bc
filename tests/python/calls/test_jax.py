"""Arrays of JAX, which never change, in the host's memory."""

import numpy as np
import pytest
from helpers import threads

import hocket

jax = pytest.importorskip("jax")
jnp = jax.numpy


def on_two(body):
    threads(2, body)


def ramp(comm, *shape, dtype="float32"):
    """Different on every rank and at every index."""
    return jnp.arange(int(np.prod(shape)), dtype=dtype).reshape(shape) + 100 * comm.rank


def both(*shape, dtype="float32"):
    first = np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)
    return first, first + np.asarray(100, dtype)


def same(found, expected):
    assert isinstance(found, jax.Array), type(found)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    assert np.array_equal(np.asarray(found), expected), found


def test_results_come_as_new_arrays():
    def body(comm):
        r = comm.rank
        a, b = both(2, 3)
        x = ramp(comm, 2, 3)
        same(comm.all_reduce(x), a + b)
        same(comm.all_reduce(x, op="max"), b)
        same(comm.reduce_scatter(x), (a + b)[r])
        same(comm.all_gather(x), np.stack([a, b]))
        same(comm.all_to_all(x), np.stack([a[r], b[r]]))
        same(comm.all_gather_v(x), np.concatenate([a, b]))
        same(comm.broadcast(x, root=1), b)
        same(comm.send_recv(x, 1 - r), [b, a][r])
        for found, expected in zip(comm.all_gather_coalesced([x, x[0]]), (
                np.stack([a, b]), np.stack([a[0], b[0]]))):
            same(found, expected)
        found = comm.reduce(x, root=1)
        gathered = comm.gather(x, root=1)
        if r == 1:
            same(found, a + b)
            same(gathered, np.stack([a, b]))
            assert comm.broadcast(x, root=1) is x
        else:
            assert found is None and gathered is None
            comm.broadcast(x, root=1)
        same(x, [a, b][r])  # as it was

    on_two(body)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "bfloat16", "complex64"])
def test_dtypes(dtype):
    def body(comm):
        x = jnp.asarray([1, 0, 1 + comm.rank]).astype(dtype)
        op = "max" if dtype != "complex64" else "sum"
        expected = [1, 0, 2] if op == "max" else [2, 0, 3]
        same(comm.all_reduce(x, op=op), np.asarray(jnp.asarray(expected).astype(dtype)))

    on_two(body)


def test_async_and_prepared():
    def body(comm):
        a, b = both(1000)
        x = ramp(comm, 1000)
        work = comm.all_reduce_async(x)
        found = work.wait()
        same(found, a + b)
        assert work.synchronize() is found
        same(comm.all_gather_async(x).wait(timeout=40), np.stack([a, b]))
        with pytest.raises(hocket.InvalidArgument, match="prepared call.*give out="):
            comm.prepare_all_reduce(x)
        out = np.zeros(1000, "float32")
        call = comm.prepare_all_reduce(x, out=out)
        assert call() is out and np.array_equal(out, a + b)

    on_two(body)


def test_what_jax_has_still_to_compute_is_waited_for():
    def body(comm):
        matrix = jnp.full((400, 400), 0.0025 * (comm.rank + 1), "float32")
        product = jax.jit(lambda m: jax.lax.fori_loop(0, 60, lambda _, p: p @ matrix, m))(matrix)
        found = comm.all_reduce(product)  # at once: the product is not ready
        expected = np.asarray(product)
        other = comm.all_gather(product)
        assert np.array_equal(np.asarray(other)[comm.rank], expected)
        assert np.array_equal(np.asarray(found), np.asarray(other[0] + other[1]))
        again = jax.jit(lambda m: m * 2)(found)  # a result like any other
        assert np.array_equal(np.asarray(again), 2 * np.asarray(found))

    on_two(body)


def test_what_would_be_written_is_refused():
    def body(comm):
        x = ramp(comm, 4)
        out = np.empty(4, "float32")
        with pytest.raises(hocket.InvalidArgument, match="out is an array of JAX.*leave it away"):
            comm.all_reduce(out, out=x)
        with pytest.raises(hocket.InvalidArgument, match="x is an array of JAX.*jax.numpy.asarray"):
            comm.recv(x, 1 - comm.rank)
        with pytest.raises(hocket.InvalidArgument, match="out is an array of JAX"):
            comm.all_gather(out, out=jnp.zeros(8))
        with pytest.raises(hocket.InvalidArgument, match="arrays.0. is an array of JAX"):
            comm.all_reduce_coalesced([x])
        assert comm.all_reduce(x, out=out) is out
        assert out.tolist() == [100, 102, 104, 106]

    on_two(body)


def test_where_an_array_was_put_stays():
    def body(comm):
        device = jax.devices("cpu")[0]
        placed = comm.all_reduce(jax.device_put(jnp.ones(3), device))
        assert placed.devices() == {device}
        free = comm.all_reduce(jnp.ones(3))
        assert free.devices() == {device}
        same(jax.jit(jnp.add)(placed, free), np.full(3, 4, "float32"))

    on_two(body)
