"""Program of test_mpi_programs: JAX's collectives between processes, whose results go to a file.

Arguments: the coordinator's address, the file. Each process has one device, as JAX's MPI wants.
"""

import os
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

address, file = sys.argv[1:]
rank, size = int(os.environ["HOCKET_RANK"]), int(os.environ["HOCKET_SIZE"])
jax.distributed.initialize(address, num_processes=size, process_id=rank)
devices = jax.device_count()
assert devices == size
mesh = Mesh(np.array(jax.devices()), ("x",))
ROW, WHOLE = PartitionSpec("x"), PartitionSpec()


def values(dtype, columns):
    """A row for each device, whose entries differ by row and column and are exact in every type."""
    whole = (np.arange(devices)[:, None] * 5 + np.arange(columns) * 3) % 7
    return (whole % 2 == 1) if dtype == "bool" else whole.astype(jnp.dtype(dtype))


def sharded(array):
    return jax.make_array_from_callback(array.shape, NamedSharding(mesh, ROW), lambda at: array[at])


def over_devices(function, out=ROW):
    return jax.jit(jax.shard_map(function, mesh=mesh, in_specs=ROW, out_specs=out, check_vma=False))


def psum_scatter(x):
    return jax.lax.psum_scatter(x, "x", scatter_dimension=1, tiled=True)


def all_to_all(x):
    return jax.lax.all_to_all(x, "x", split_axis=1, concat_axis=0, tiled=True)


def ppermute(x):
    return jax.lax.ppermute(x, "x", [(i, (i + 1) % devices) for i in range(devices)])


def loss(x):
    return over_devices(lambda y: jax.lax.psum(y * y, "x"), WHOLE)(x).sum()


CALLS = {
    "psum": lambda x: jax.lax.psum(x, "x"),
    "pmax": lambda x: jax.lax.pmax(x, "x"),
    "pmin": lambda x: jax.lax.pmin(x, "x"),
    "all_gather": lambda x: jax.lax.all_gather(x, "x", axis=0, tiled=True),
    "psum_scatter": psum_scatter,
    "all_to_all": all_to_all,
    "ppermute": ppermute,
}
found = {}


def keep(name, array):
    """Keeps what this process has of an array."""
    shards = sorted(array.addressable_shards, key=lambda shard: shard.device.id)
    found[name] = np.stack([np.asarray(shard.data).astype("float64") for shard in shards])


for dtype in ("float32", "int32", "bfloat16", "uint8", "bool"):
    for columns in (devices, devices * 250):
        x = sharded(values(dtype, columns))
        for name, call in CALLS.items():
            if dtype == "bool" and name in ("psum", "psum_scatter", "pmax", "pmin"):
                continue
            keep(f"{name} {dtype} {columns}", over_devices(call)(x))
keep("any", jax.jit(lambda x: x.any(axis=0), out_shardings=NamedSharding(mesh, WHOLE))(
    sharded(values("bool", 4 * devices))))
keep("grad", jax.jit(jax.grad(loss))(sharded(values("float32", 12))))
keep("sharded product", jax.jit(lambda a: a.T @ a, out_shardings=NamedSharding(mesh, WHOLE))(
    sharded(values("float32", 6))))
found["process_allgather"] = multihost_utils.process_allgather(np.arange(3.0) + 10 * rank)
found["broadcast_one_to_all"] = np.asarray(
    multihost_utils.broadcast_one_to_all(np.arange(4.0) if rank == 0 else np.zeros(4)))
multihost_utils.sync_global_devices("the end")
np.savez(f"{file}.{rank}.npz", **found)
