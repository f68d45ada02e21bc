"""JAX's psum between CPU processes: hocket, as JAX's MPI, beside JAX's own gloo.

    bench/jax_psum.py --ranks 2 --rounds 5          # PYTHONPATH as for the tests; needs JAX

Jobs of both take turns. A job measures single psums, one jitted function each, and psums that follow
each other within one jitted function. Prints microseconds a psum, medians over the rounds, and the
median of the ratios of rounds. A job ends with an error if a sum is wrong.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

UNITS = {"K": 1 << 10, "M": 1 << 20}
IN_A_JIT = 100


def size_of(text):
    return int(text[:-1]) * UNITS[text[-1]] if text[-1] in UNITS else int(text)


def run_rank(options):
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec

    rank, size = int(os.environ["HOCKET_RANK"]), int(os.environ["HOCKET_SIZE"])
    jax.distributed.initialize(options.address, num_processes=size, process_id=rank)
    mesh = jax.make_mesh((size,), ("ranks",))
    spec = PartitionSpec("ranks")

    def summed(times):
        def of_one(x):
            for _ in range(times):
                x = jax.lax.psum(x, "ranks") / size
            return x

        return jax.jit(
            jax.shard_map(of_one, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
        )

    found = {}
    for text in options.sizes.split(","):
        count = max(1, size_of(text) // 4)
        own = jnp.full((1, count), rank + 1.0, jnp.float32)
        x = jax.make_array_from_process_local_data(jax.NamedSharding(mesh, spec), own)
        for times in (1, IN_A_JIT):
            # So that no cell takes more than about a second.
            if times * count > 1 << 24:
                continue
            call = summed(times)
            mean = call(x).addressable_data(0)
            assert abs(mean - (size + 1) / 2).max() < 1e-5, (text, times)
            took = []
            for _ in range(max(5, min(200, (1 << 26) // (count * times)))):
                began = time.perf_counter()
                call(x).block_until_ready()
                took.append((time.perf_counter() - began) / times * 1e6)
            found[f"{text} {times}"] = statistics.median(took)
    if rank == 0:
        print(json.dumps(found), flush=True)
    jax.distributed.shutdown()


def measure(carrier, port, options):
    mpi = ["--mpi"] if carrier == "mpi" else []
    job = ["hocket", "run", *mpi, "-n", str(options.ranks), "--no-prefix", "--", sys.executable]
    job += [__file__, "--sizes", options.sizes, "--address", f"127.0.0.1:{port}"]
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "JAX_CPU_COLLECTIVES_IMPLEMENTATION": carrier,
    }
    said = subprocess.run(job, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(next(line for line in said.stdout.splitlines() if line.startswith("{")))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5, help="jobs of each")
    parser.add_argument("--sizes", default="8,1K,64K,1M,16M", help="bytes")
    parser.add_argument("--port", type=int, default=8476, help="the first of 2 * ROUNDS ports")
    parser.add_argument("--address", help=argparse.SUPPRESS)  # set for the ranks of a job
    options = parser.parse_args()
    if options.address:
        return run_rank(options)
    rounds = []
    for turn in range(options.rounds):
        both = {}
        for carrier in ("mpi", "gloo")[:: 1 if turn % 2 == 0 else -1]:
            port = options.port + 2 * turn + (carrier == "mpi")
            both[carrier] = measure(carrier, port, options)
        rounds.append(both)
    print(f"{'bytes':>6} {'in a jit':>8} {'hocket':>10} {'gloo':>10}  ratio")
    for cell in rounds[0]["mpi"]:
        ours, theirs = ([both[carrier][cell] for both in rounds] for carrier in ("mpi", "gloo"))
        ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
        cells = " ".join(f"{statistics.median(times):10.1f}" for times in (ours, theirs))
        print("{:>6} {:>8}".format(*cell.split()), cells, f" {ratio:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
