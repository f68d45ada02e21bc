#!/usr/bin/env python3
"""Two hosts beside a crowd of busy processes: is anybody taken for dead who is only slow?

    tools/speed/busy_neighbours.py --seconds 600 --busy 128     # PATH and PYTHONPATH as for the tests

For each silence (HOCKET_SILENCE) there is a job of two pretended hosts with two ranks each, which
makes calls. All jobs run at the same time. The crowd comes when all have joined, and leaves when
the time is over. Exit status 1 if a call failed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

RANK = r"""
import os, sys, time
rank, seconds = int(sys.argv[1]), float(sys.argv[3])
os.environ["HOCKET_HOST"] = f"{rank // 2}/"
import numpy as np
import hocket
comm = hocket.init(rank=rank, size=4, address=sys.argv[2], key=bytes(32), timeout=280)
print("joined", flush=True)
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


# This program loops until it is killed, or until its parent has ended.
BUSY = r"""
import os, sys
while os.getppid() == int(sys.argv[1]):
    for _ in range(1_000_000):
        pass
"""


class Rank:
    """The process of one rank, and the file with its output."""

    def __init__(self, number, address, silence, seconds, folder):
        self.output = os.path.join(folder, f"{silence}-{number}")
        with open(self.output, "w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", RANK, str(number), address, str(seconds)],
                env={**os.environ, "HOCKET_SILENCE": str(silence), "OPENBLAS_NUM_THREADS": "1"},
                stdout=output, stderr=subprocess.STDOUT)

    def text(self):
        with open(self.output) as output:
            return output.read()

    def has_ended(self):
        return self.process.poll() is not None


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--busy", type=int, default=128)
    parser.add_argument("--silence", action="append", type=float, help="default 3 and 0.5")
    arguments = parser.parse_args()
    busy = []
    jobs = {}
    wrong = 0
    folder = tempfile.TemporaryDirectory()
    try:
        for number, silence in enumerate(arguments.silence or [3.0, 0.5]):
            address = f"unix:hocket-busy-{os.getpid()}-{number}"
            jobs[silence] = [Rank(number, address, silence, arguments.seconds, folder.name)
                             for number in range(4)]
        everybody = [rank for ranks in jobs.values() for rank in ranks]
        while not all("joined" in rank.text() or rank.has_ended() for rank in everybody):
            time.sleep(0.05)
        busy += [subprocess.Popen([sys.executable, "-c", BUSY, str(os.getpid())])
                 for _ in range(arguments.busy)]
        until = time.monotonic() + arguments.seconds
        while time.monotonic() < until and not any(rank.has_ended() for rank in everybody):
            time.sleep(0.2)
        for each in busy:
            each.kill()
        for silence, ranks in jobs.items():
            failed = any(rank.process.wait(timeout=300) for rank in ranks)
            wrong += failed
            print(f"silence {silence} s, {arguments.busy} busy processes:",
                  "FAILED" if failed else ranks[0].text().replace("joined", "").strip(), flush=True)
            if failed:
                print(*(rank.text() for rank in ranks), sep="\n", flush=True)
    finally:
        for each in [*busy, *(rank.process for ranks in jobs.values() for rank in ranks)]:
            each.kill()
            each.wait()
        folder.cleanup()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
