#!/usr/bin/env python3
"""Makes a job stand still again and again, and looks whether hocket names the right rank and call.

A job of some ranks makes collectives, each with a number that identifies it. Each rank also records
the calls that it has begun and ended on a separate board. In each trial one rank, at random, is
stopped by a signal at a random moment, or leaves a call out and does something else. Then `hocket
top --json` and the warning of the waiting ranks (HOCKET_WARN=0.5) are compared with the board. At
the end the rank goes on, and so does the job.

    tools/faults/standstill.py --trials 200            # of each kind; prints a table
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

WARN = 0.5
# The call of each number, by the remainder.
CALLS = ["all_reduce", "barrier", "broadcast", "all_gather", "reduce_scatter"]
WAITED = re.compile(r"hocket\[(\d+)\] warning: rank (\d+) has waited [^ ]+ s in (\w+) #(\d+)")
NAMED = re.compile(r"for rank (\d+) \(pid \d+\)")

RANK = """
import os, sys, time
from pathlib import Path
import numpy as np
import hocket

CALLS = %r
folder = Path(sys.argv[1])
comm = hocket.init()
board = np.memmap(folder / "board", "int64", "r+", shape=(comm.size, 3))
board[comm.rank, 2] = os.getpid()
x = np.ones(64 * comm.size, "float32")
part = np.ones(64, "float32")
number = 0

def call():
    global number
    number += 1
    board[comm.rank, 0] = number
    kind = CALLS[number %% len(CALLS)]
    if kind == "all_reduce":
        comm.all_reduce(x, op="max")
    elif kind == "barrier":
        comm.barrier()
    elif kind == "broadcast":
        comm.broadcast(x, root=number %% comm.size)
    elif kind == "all_gather":
        comm.all_gather(part, out=x)
    else:
        comm.reduce_scatter(x, out=part, op="max")
    board[comm.rank, 1] = number

while True:
    # All ranks go by what the first one of them reads: whether to end, and who leaves a call out.
    order = np.zeros(2, "int64")
    if comm.rank == 0:
        order[:] = np.fromfile(folder / "order", "int64", 2)
    number += 1
    board[comm.rank, 0] = number
    comm.broadcast(order, root=0)
    board[comm.rank, 1] = number
    trial, who = order
    if trial < 0:
        break
    if who == comm.rank and not (folder / f"release-{trial}").exists():
        (folder / f"left-out-{trial}").touch()
        while not (folder / f"release-{trial}").exists():
            time.sleep(0.002)
    call()
""" % (CALLS,)


@dataclass
class Kind:
    name: str
    trials: int = 0
    top_rank: int = 0
    top_call: int = 0
    warned_rank: int = 0
    warned_call: int = 0
    speakers: int = 0  # trials in which one rank spoke
    seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


class Job:
    """The ranks and their output."""

    def __init__(self, hocket: str, ranks: int, folder: Path) -> None:
        import numpy as np

        self.hocket, self.ranks, self.folder = hocket, ranks, folder
        self.board = np.memmap(folder / "board", "int64", "w+", shape=(ranks, 3))
        self.give(0, -1)
        self.log = folder / "log"
        (folder / "rank.py").write_text(RANK)
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [hocket, "run", "-n", str(ranks), "--", sys.executable, str(folder / "rank.py"),
                 str(folder)],
                stdout=log, stderr=log, env={**os.environ, "HOCKET_WARN": str(WARN)})
        self.wait_until(lambda: all(self.board[:, 1] > 3), "the job did not start")

    def give(self, trial: int, who: int) -> None:
        import numpy as np

        made = self.folder / "order.new"
        np.array([trial, who], "int64").tofile(made)
        made.rename(self.folder / "order")

    def wait_until(self, condition, what: str, seconds: float = 30) -> None:
        until = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > until or self.process.poll() is not None:
                raise SystemExit(f"{what}\n{self.log.read_text()[-3000:]}")
            time.sleep(0.005)

    def lines(self, since: int) -> list[str]:
        with self.log.open() as log:
            log.seek(since)
            return log.read().splitlines()

    def pid(self, rank: int) -> int:
        return int(self.board[rank, 2])

    def end(self) -> None:
        self.give(-1, -1)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


def name_of(job: Job, number: int) -> str:
    """Each turn is a broadcast and a call: the number of hocket's call says which."""
    return "broadcast" if number % 2 == 1 else CALLS[number % len(CALLS)]


def one_trial(job: Job, kind: Kind, trial: int, rank: int, stop: bool) -> None:
    start = job.log.stat().st_size
    kind.trials += 1
    if stop:
        time.sleep(random.uniform(0, 0.05))
        os.kill(job.pid(rank), signal.SIGSTOP)
    else:
        job.give(trial, rank)
        job.wait_until((job.folder / f"left-out-{trial}").exists, "nobody left a call out")
    began = time.monotonic()
    waited: list[re.Match[str]] = []

    def is_told() -> bool:
        waited[:] = [m for line in job.lines(start) if (m := WAITED.search(line))]
        return bool(waited)

    job.wait_until(is_told, f"no warning of rank {rank}")
    kind.seconds.append(time.monotonic() - began)
    done = subprocess.run([job.hocket, "top", "--json", "--seconds", "0.1", str(job.pid(0))],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"hocket top ended with {done.returncode}: {done.stderr}")
    seen = json.loads(done.stdout)["jobs"][0]
    begun, ended = (int(n) for n in job.board[rank, :2])
    # The call that it holds up is the one it is in, or the next.
    held = begun if begun > ended else begun + 1
    problems = []
    if seen["blamed"] == [rank]:
        kind.top_rank += 1
    else:
        problems.append(f"top blames {seen['blamed']}, not [{rank}]")
    if is_right_call(job, seen, rank, held):
        kind.top_call += 1
    else:
        problems.append(f"top shows another call than #{held}")
    is_told()  # what was said since, too
    texts = [line for line in job.lines(start) if WAITED.search(line)]
    if all(NAMED.findall(text)[:1] == [str(rank)] for text in texts):
        kind.warned_rank += 1
    else:
        problems.append(f"the warning names another than rank {rank}: {texts}")
    if all(is_right_wait(job, match) for match in waited):
        kind.warned_call += 1
    else:
        problems.append(f"the warning names another call: {texts}")
    if len({match[2] for match in waited}) == 1:
        kind.speakers += 1
    kind.wrong += problems
    if stop:
        os.kill(job.pid(rank), signal.SIGCONT)
    else:
        job.give(trial, -1)
        (job.folder / f"release-{trial}").touch()
    before = int(job.board[:, 1].max())
    job.wait_until(lambda: all(job.board[:, 1] > before + 2), "the job did not go on")


def is_right_wait(job: Job, match: re.Match[str]) -> bool:
    rank, name, number = int(match[2]), match[3], int(match[4])
    return int(job.board[rank, 0]) == number and name_of(job, number) == name


def is_right_call(job: Job, seen: dict, rank: int, held: int) -> bool:
    """Returns true if each rank is shown at the board's position, the stopped rank at `held`."""
    for each in seen["ranks"]:
        group = each["groups"][each["doing"]]
        begun, ended = (int(n) for n in job.board[each["rank"], :2])
        # A rank that was stopped between the board and hocket may differ by one step.
        apart = 1 if each["rank"] == rank else 0
        if abs(group["calls"] - begun) > apart:
            return False
        if not group["call"].startswith(f"{name_of(job, group['calls'])} #{group['calls']}"):
            return False
        # The stopped rank may have sent its part of the call already. The others may also be ahead by
        # broadcasts from other roots, which need nothing from it; at most three follow each other.
        if each["rank"] != rank and begun > ended and not held <= begun <= held + 4:
            return False
    return True


def table(kinds: list[Kind]) -> str:
    lines = ["| harm | trials | `top`: rank | `top`: call | warning: rank | warning: call | one speaker "
             "| median | longest |",
             "| --- | --: | --: | --: | --: | --: | --: | --: | --: |"]
    for kind in kinds:
        lines.append(f"| {kind.name} | {kind.trials} | {kind.top_rank} | {kind.top_call} "
                     f"| {kind.warned_rank} | {kind.warned_call} | {kind.speakers} "
                     f"| {statistics.median(kind.seconds):.2f} s | {max(kind.seconds):.2f} s |")
    return "\n".join(lines)


def run(hocket: str, ranks: int, trials: int, seed: int) -> list[Kind]:
    random.seed(seed)
    kinds = [Kind("SIGSTOP"), Kind("call left out")]
    with tempfile.TemporaryDirectory() as folder:
        job = Job(hocket, ranks, Path(folder))
        try:
            for trial in range(1, 2 * trials + 1):
                stop = trial % 2 == 0
                one_trial(job, kinds[0 if stop else 1], trial, random.randrange(ranks), stop)
            job.end()
        finally:
            for rank in range(ranks):
                if job.process.poll() is None and job.pid(rank) != 0:
                    os.kill(job.pid(rank), signal.SIGKILL)
            job.process.wait()
    return kinds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hocket", default="hocket", help="the command")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--trials", type=int, default=20, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    kinds = run(arguments.hocket, arguments.ranks, arguments.trials, arguments.seed)
    print(table(kinds))
    for kind in kinds:
        for wrong in kind.wrong:
            print(f"{kind.name}: {wrong}", file=sys.stderr)
    return 1 if any(kind.wrong for kind in kinds) else 0


if __name__ == "__main__":
    sys.exit(main())
