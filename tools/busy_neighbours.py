#!/usr/bin/env python3
"""Two hosts beside a crowd of busy processes: is anybody taken for dead who is only slow?

    tools/busy_neighbours.py --seconds 600 --busy 128     # PATH and PYTHONPATH as for the tests

For each silence (HOCKET_SILENCE) a job of two pretended hosts with two ranks each makes calls, all of
them at the same time. Exit status 1 where a call failed.
"""

import argparse
import os
import subprocess
import sys
import time

RANK = r"""
import os, sys, time
rank, seconds = int(sys.argv[1]), float(sys.argv[3])
os.environ["HOCKET_HOST"] = f"{rank // 2}/"
import numpy as np
import hocket
comm = hocket.init(rank=rank, size=4, address=sys.argv[2], key=bytes(32), timeout=280)
began, calls, longest = time.monotonic(), 0, 0.0
going = np.ones(1)
while going[0]:
    before = time.monotonic()
    x = np.full(1000, rank + 1.0)
    comm.all_reduce(x)
    assert (x == 10).all()
    going[0] = time.monotonic() - began < seconds
    comm.broadcast(going)
    calls, longest = calls + 2, max(longest, time.monotonic() - before)
    time.sleep(0.01)
comm.close()
if rank == 0:
    print(f"{calls} calls in {time.monotonic() - began:.0f} s, two at most {longest:.2f} s", flush=True)
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--busy", type=int, default=128)
    parser.add_argument("--silence", action="append", type=float, help="default 3 and 0.5")
    arguments = parser.parse_args()
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
            for _ in range(arguments.busy)]
    jobs = {}
    wrong = 0
    try:
        for number, silence in enumerate(arguments.silence or [3.0, 0.5]):
            address = f"unix:hocket-busy-{os.getpid()}-{number}"
            jobs[silence] = [
                subprocess.Popen(
                    [sys.executable, "-c", RANK, str(rank), address, str(arguments.seconds)],
                    env={**os.environ, "HOCKET_SILENCE": str(silence), "OPENBLAS_NUM_THREADS": "1"},
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                for rank in range(4)]
        limit = time.monotonic() + 2 * arguments.seconds + 300
        for silence, ranks in jobs.items():
            texts = [rank.communicate(timeout=max(1, limit - time.monotonic()))[0]
                     for rank in ranks]
            failed = any(rank.returncode for rank in ranks)
            wrong += failed
            print(f"silence {silence} s, {arguments.busy} busy processes: "
                  f"{'FAILED' if failed else texts[0].strip()}", *(texts if failed else []),
                  sep="\n" if failed else "", flush=True)
    finally:
        for each in [*busy, *(rank for ranks in jobs.values() for rank in ranks)]:
            each.kill()
            each.wait()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
