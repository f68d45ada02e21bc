#!/usr/bin/env python3
"""Measures how long after a host has fallen silent the others go on without it.

    silent_host.py [--hosts 3] [-n 2] [--rounds 10] [--silence 3]

Hosts are network namespaces behind a router (needs root), with `-n` ranks each. All ranks make calls.
At a random point all packets to and from one host begin to disappear, as if its power or cable had
failed. Each round prints two times, measured from just before that point by the machine's one clock.
The end of the first: the last rank of the other hosts got PeerDied, or its call ended because of
another rank's error. The end of the second: the last of these ranks passed a barrier of the rebuilt
communicator. A summary of all rounds follows. `--silence`: HOCKET_SILENCE, seconds.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools" / "faults"))
from chaos_hosts import Namespaces, why_no_namespaces  # noqa: E402

RANK = """
import os, sys, time
import numpy as np, hocket
comm = hocket.init()
print("ready", flush=True)
x = np.ones(16384, np.float32)
try:
    while True:
        comm.all_reduce(x)
except (hocket.PeerDied, hocket.Aborted):
    heard = time.monotonic()
try:
    comm = comm.rebuild(timeout=60)
    comm.barrier()
    print("went", heard, time.monotonic(), comm.size, flush=True)
except hocket.RendezvousError:
    print("out", flush=True)
os._exit(0)
"""


def measure(hosts, ranks, silence, victim):
    """Runs one round. Returns (seconds until all ranks had heard, seconds until all had gone on)."""
    network = Namespaces(hosts)
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder, "key")
        subprocess.run(["hocket", "key", str(key)], check=True, capture_output=True)
        outputs = [Path(folder, f"out{i}") for i in range(hosts)]
        launchers = []
        try:
            for i, output in enumerate(outputs):
                with output.open("w") as stdout:
                    launchers.append(subprocess.Popen(
                        ["hocket", "run", "-n", str(ranks), "--nnodes", str(hosts),
                         "--node-rank", str(i), "--key", str(key), "--keep-going",
                         "--rendezvous", "10.78.0.2:29400", "--", sys.executable, "-c", RANK],
                        env={**os.environ, "HOCKET_SILENCE": str(silence)},
                        preexec_fn=lambda i=i: network.enter(i),
                        stdout=stdout, stderr=subprocess.STDOUT))
            await_lines(outputs, "ready", hosts * ranks)
            time.sleep(0.5 + random.random())
            begin = time.monotonic()
            network.blackhole(victim)
            others = [output for i, output in enumerate(outputs) if i != victim]
            lines = await_lines(others, "went", (hosts - 1) * ranks)
        finally:
            for launcher in launchers:
                launcher.kill()
                launcher.wait()
            network.close()
    heard, went, sizes = zip(*[line.split()[-3:] for line in lines], strict=True)
    if set(sizes) != {str((hosts - 1) * ranks)}:
        raise SystemExit(f"went on as {sizes}")
    return max(map(float, heard)) - begin, max(map(float, went)) - begin


def await_lines(outputs, word, count):
    until = time.monotonic() + 120
    while time.monotonic() < until:
        lines = [line for output in outputs for line in output.read_text().splitlines()]
        found = [line for line in lines if word in line.split()]
        if len(found) >= count:
            return found
        time.sleep(0.01)
    raise SystemExit("\n".join([f"{len(found)} of {count} said {word}", *lines]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, default=3)
    parser.add_argument("-n", type=int, default=2, help="ranks a host")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--silence", type=float, default=3)
    options = parser.parse_args()
    if why_no_namespaces():
        raise SystemExit(why_no_namespaces())
    samples = []
    for i in range(options.rounds):
        # With more than two hosts host 0 may fail, too: the others still are the majority.
        victim = (i if options.hosts > 2 else 1) % options.hosts
        samples.append(measure(options.hosts, options.n, options.silence, victim))
        print(f"host {victim} silent: heard after {samples[-1][0]:.2f} s, "
              f"going on after {samples[-1][1]:.2f} s", flush=True)
    for name, times in zip(("heard", "going on"), zip(*samples, strict=True), strict=True):
        print(f"{name}: median {statistics.median(times):.2f} s, "
              f"{min(times):.2f} to {max(times):.2f} s")


if __name__ == "__main__":
    main()
