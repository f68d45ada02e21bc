#!/usr/bin/env python3
"""Kills a rank of a program of MPI, and checks how its job ends.

    killed.py [--rounds N] [--ranks N] [--seed N] [--victim N] [--alone] HOCKET PROGRAM [ARGUMENT ...]

{} among the arguments stands for the number of the job. The program prints "begun" once its
ranks are at work, and then goes on. Each job must fail, name the rank that was killed, and leave no process and
nothing in /dev/shm. With --alone the launcher ends no rank, so all must end by
themselves.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

MARK = "HOCKET_TEST_OF_DEATHS"


def processes(mark: str) -> dict[int, int]:
    """The ranks of a job by process."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = dict(entry.split(b"=", 1) for entry in (folder / "environ").read_bytes().split(b"\0")
                             if b"=" in entry)
            is_dead = (folder / "stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
        except OSError:
            continue
        if variables.get(MARK.encode()) == mark.encode() and not is_dead:
            found[int(folder.name)] = int(variables.get(b"HOCKET_RANK", -1))
    return found


def in_shared_memory(pids) -> set[str]:
    """The files in /dev/shm that these processes have mapped."""
    found = set()
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
        except OSError:
            continue
        found |= {line.split(maxsplit=5)[5] for line in lines if "/dev/shm/" in line}
    return found


def one_job(arguments, number: int, chance: random.Random) -> list[str]:
    """Run a job, kill one of its ranks, and return what is wrong with its end."""
    mark = uuid.uuid4().hex
    program = [str(number) if each == "{}" else each for each in arguments.program]
    job = subprocess.Popen(
        [arguments.hocket, "run", "--mpi", "-n", str(arguments.ranks), *arguments.grace, "--", *program],
        env={**os.environ, MARK: mark}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True)
    watchdog = threading.Timer(arguments.watchdog, lambda: [os.kill(each, signal.SIGKILL) for each in processes(mark)])
    watchdog.start()
    said = ""
    for line in job.stdout:
        said += line
        if "begun" in line:
            break
    time.sleep(chance.random() * 0.2)
    victim = chance.randrange(arguments.ranks) if arguments.victim is None else arguments.victim
    ranks = processes(mark)
    shared = in_shared_memory(ranks)
    pids = [pid for pid, rank in ranks.items() if rank == victim]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    since = time.monotonic()
    said += job.stdout.read()
    code = job.wait()
    lived = time.monotonic() - since
    is_timely = watchdog.is_alive()
    watchdog.cancel()
    wrong = []
    if not is_timely:
        wrong.append("it did not end by itself")
    if not pids:
        wrong.append(f"rank {victim} was not there to be killed")
    if code == 0:
        wrong.append("it succeeded")
    if f"rank {victim}" not in said or "SIGKILL" not in said:
        wrong.append(f"it does not say that SIGKILL ended rank {victim}")
    if left := processes(mark):
        wrong.append(f"processes are left: {left}")
        for pid in left:
            os.kill(pid, signal.SIGKILL)
    if left := [file for file in shared if os.path.exists(file)]:
        wrong.append(f"these are left: {left}")
    print(f"rank {victim} was killed; the job ended after {lived:.3f} s")
    if wrong:
        print(said)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--victim", type=int, help="the rank that is killed; one at random")
    parser.add_argument("--watchdog", type=float, default=50, help="seconds that a job may take")
    parser.add_argument("--alone", dest="grace", action="store_const", const=["--grace", "1000"], default=[])
    parser.add_argument("hocket")
    parser.add_argument("program", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    chance = random.Random(arguments.seed)
    failed = False
    for number in range(arguments.rounds):
        for text in one_job(arguments, number, chance):
            failed = True
            print(f"job {number}: {text}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
