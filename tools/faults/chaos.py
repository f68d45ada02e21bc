#!/usr/bin/env python3
"""Jobs of random calls that come to random harm, for as long as one likes.

    tools/faults/chaos.py --minutes 20            # PATH and PYTHONPATH as for the tests
    tools/faults/chaos.py --seed 7 --job 31       # the job that failed, once more
    tools/faults/chaos.py campaign --help         # many faults a job, and tables of what came of them

Each job has 2 to 6 ranks and makes random calls whose results are known. The ranks are on 1 to 3
hosts, in threads, under mpirun, or have arrays in GPUs' memory. Hosts are network namespaces, if
root is there to make them, and pretended ones. While a job joins, calls or ends, processes are
killed or stopped, hosts are cut off, and connections cut. Every survivor must end in time, with
right results or an error that fits the fault, and leave nothing behind. Exit status 1 if one did
not: the failure is printed, with its seed.
"""

import argparse
import collections
import gc
import itertools
import json
import mmap
import os
import random
import re
import select
import signal
import socket
import struct
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))
import chaos_hosts
import chaos_machine
import chaos_stacks
import chaos_rank

HARMS = {
    "shm": ["none", "kill", "kill", "kill two", "stop", "pause", "stop and kill"],
    "algorithm": ["none", "kill", "kill two", "stop", "pause", "stop and kill"],
    "threads": ["none", "pause"],
    "pretended": ["none", "kill", "kill two", "stop", "pause", "stop and kill", "cut", "cut"],
    "namespaces": ["none", "kill", "kill two", "stop", "pause", "cut", "blackhole", "one way",
                   "gap"],
    "mpi": ["none", "kill", "stop"],
    "gpus": ["none", "kill", "kill", "stop", "pause"],
}
SILENCE = 3.0
STOPPED_DEADLINE = 1.0  # deadline of calls if a process is stopped, which lasts longer
STOPPED_FOR = 4.0
PATIENT_DEADLINE = 60.0
# Errors that survivors may end with, beside "done".
ALLOWED = {"none": [], "pause": [], "gap": [], "kill": ["PeerDied"], "kill two": ["PeerDied"],
           "stop": ["DeadlineExceeded", "PeerDied"],
           "stop and kill": ["PeerDied", "DeadlineExceeded"], "cut": ["PeerDied"],
           "blackhole": ["PeerDied"], "one way": ["PeerDied"]}
# Seconds from the harm until all must know, on an idle machine.
KNOWN_AFTER = {"stop": STOPPED_DEADLINE, "stop and kill": STOPPED_DEADLINE, "cut": 2 * SILENCE,
               "blackhole": 2 * SILENCE, "one way": 2 * SILENCE}


class Job:
    """One job: its plan, its processes, their reports. A resource."""

    def __init__(self, seed, number, places, slack):
        self.seed, self.number, self.slack = seed, number, slack
        draw = self.draw = random.Random(f"{seed}:{number}")
        self.place = draw.choice(places)
        self.size = draw.randint(2, {"mpi": 3, "gpus": chaos_machine.count_gpus()}.get(self.place, 6))
        self.harm = draw.choice(HARMS[self.place])
        if self.size < 3 and self.harm in ("kill two", "stop and kill"):
            self.harm = "kill"
        # Under mpirun processes take their time to start, and MPI's own joining is not ours.
        at_join = self.place not in ("threads", "mpi", "gpus") and self.harm in ("kill", "pause", "cut")
        self.when = draw.choice(["calls", "calls", "calls", "exit", *["join"] * at_join])
        hosts = draw.randint(2, 3) if self.place in ("pretended", "namespaces") else 1
        self.hosts = [draw.randrange(hosts) if i >= hosts else i for i in range(self.size)]
        self.victims = draw.sample(range(self.size), 2 if self.harm in (
            "kill two", "stop and kill") else 1)
        self.after = draw.choice([0.0, 0.003, 0.03, 0.3]) * draw.random()
        self.pause = draw.uniform(0.02, 0.3)
        stopped = self.harm in ("stop", "stop and kill")
        self.spec = {
            "seed": draw.randrange(1 << 30), "size": self.size,
            "calls": draw.choice([3, 20, 60]) if self.when != "calls" else 300,
            "join": 6.0 if self.when == "join" and self.harm in ("kill", "cut") else 60.0,
            "deadline": STOPPED_DEADLINE if stopped else PATIENT_DEADLINE,
            "engines": [self.place] if self.place in ("algorithm", "mpi") else None,
            "without": ["ring", "many", "things", "group"] if self.place == "mpi" else []}
        if self.harm in ("none", "pause", "gap"):
            self.spec["calls"] = draw.choice([3, 40, 100])
        if self.place == "gpus":
            # The first calls connect the GPUs, which takes its time.
            self.after = draw.choice([0.1, 1.0, 3.0]) * draw.random()
            self.spec.update(gpus=True, engines=draw.choice([None, ["peer"], ["nccl"]]),
                             without=["refused"])
            if self.when == "calls" and self.harm in ("kill", "stop"):
                self.spec["calls"] = 3000
        self.key = bytes(draw.randrange(256) for _ in range(32))
        self.port = draw.randint(20_000, 29_999)
        self.processes, self.killed, self.frozen = {}, set(), set()
        self.told, self.wrong = [], []
        self.harmed_at, self.known = None, 0

    def __str__(self):
        placed = f" on hosts {self.hosts}" if len(set(self.hosts)) > 1 else ""
        return (f"job {self.number}: {self.place}, {self.size} ranks{placed}, {self.harm} at "
                f"{self.when} to {self.victims}")

    # --- Starting ---------------------------------------------------------------------------------
    def meeting(self, rank):
        address = {"namespaces": f"10.78.0.2:{self.port}",
                   "pretended": f"127.0.0.1:{self.port}"}.get(
                       self.place, f"unix:hocket-chaos-{os.getppid()}-{self.number}")
        return {"rank": rank, "size": self.size, "address": address, "key": self.key}

    def start(self, network):
        """Starts the processes. Returns true in a child that is a rank and has ended as one."""
        self.folder = tempfile.mkdtemp(prefix="hocket-chaos-")
        self.temporary = f"{self.folder}/tmp"
        os.mkdir(self.temporary)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(f"{self.folder}/told")
        self.socket.setblocking(False)
        with open(f"{self.folder}/stages", "w+b") as file:
            file.write(bytes(8 * self.size))
            file.flush()
            self.stages = mmap.mmap(file.fileno(), 0)
        if self.place == "mpi":
            return self.start_mpi()
        for rank in range(1 if self.place == "threads" else self.size):
            pid = os.fork()
            if pid == 0:
                self.be(rank, network)
                return True
            self.processes[rank] = pid
        return False

    def be(self, rank, network):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        chaos_machine.redirect(self.folder, rank, SILENCE)
        if self.place == "namespaces":
            network.enter(self.hosts[rank])
        if self.place == "pretended":
            os.environ["HOCKET_HOST"] = f"{self.hosts[rank]}/"
        if self.place == "threads":
            chaos_rank.be_threads(self.spec, self.folder)
        else:
            chaos_rank.be_rank({**self.spec, "meeting": self.meeting}, rank, self.folder)

    def start_mpi(self):
        with open(f"{self.folder}/spec", "w") as file:
            json.dump(self.spec, file)
        self.launcher = chaos_machine.start_mpi(self.size, [], chaos_rank.__file__,
                                                f"{self.folder}/spec", self.folder)
        self.processes[-1] = self.launcher.pid
        return False

    # --- Harm -------------------------------------------------------------------------------------
    def stage(self, rank):
        return struct.unpack_from("q", self.stages, 8 * rank)[0]

    def is_time(self):
        stages = [self.stage(r) for r in range(1 if self.place == "threads" else self.size)]
        if self.when == "join":
            return any(stages)
        if self.when == "exit":
            return max(stages) >= chaos_rank.LAST
        return min(stages) >= chaos_rank.JOINED

    def pid_of(self, rank):
        if self.place != "mpi":
            return self.processes.get(0 if self.place == "threads" else rank)
        return next((t["pid"] for t in self.told if t["rank"] == rank), None)

    def signal(self, rank, number):
        pid = self.pid_of(rank)
        if pid is None:
            return
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
        if number == signal.SIGKILL:
            self.killed.add(rank)

    def do_harm(self, network):
        """Harms; returns what undoes it, a list of (seconds until then, function)."""
        self.harmed_at = time.monotonic()
        first, last = self.victims[0], self.victims[-1]
        host = self.hosts[first]
        if self.harm in ("kill", "kill two"):
            for victim in self.victims:
                self.signal(victim, signal.SIGKILL)
        elif self.harm in ("stop", "pause", "stop and kill"):
            self.signal(first, signal.SIGSTOP)
            self.frozen.add(first)
            if self.harm == "stop and kill":
                self.signal(last, signal.SIGKILL)
            until = self.pause if self.harm == "pause" else STOPPED_FOR
            return [(until, lambda: self.signal(first, signal.SIGCONT))]
        elif self.harm == "cut":
            pid = self.pid_of(first)
            fds = chaos_hosts.sockets_of(pid)
            self.draw.shuffle(fds)
            self.cut = next((fd for fd in fds if chaos_hosts.cut(pid, fd)), None)
        elif self.harm in ("blackhole", "one way", "gap"):
            toward = self.harm != "one way" or self.draw.random() < 0.5
            network.blackhole(host, toward, self.harm != "one way" or not toward)
            return [(self.pause if self.harm == "gap" else 1e9, lambda: network.heal(host))]
        return []

    # --- Watching ---------------------------------------------------------------------------------
    def listen(self, seconds):
        if select.select([self.socket], [], [], seconds)[0]:
            try:
                while True:
                    self.told.append(json.loads(self.socket.recv(8192)))
            except BlockingIOError:
                pass

    def reap(self):
        for rank, pid in list(self.processes.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended == 0:
                continue
            del self.processes[rank]
            code = os.waitstatus_to_exitcode(status)
            if code == -signal.SIGKILL and rank in self.killed:
                continue
            if code == -signal.SIGABRT and self.ucx_gave_up(rank):
                self.killed.add(rank)
                self.known += 1
            elif code != 0 and rank != -1:
                self.wrong.append(f"rank {rank} ended with status {code}")

    def ucx_gave_up(self, rank):
        """Finds assertions of UCX (1.13) that end a process. One fails on an answer to a dying
        process that had just begun to connect, another on a connection that breaks while it
        is closed. This tool cannot prevent them.
        """
        with open(f"{self.folder}/out{rank}", errors="replace") as file:
            return re.search(r"\b(uc[pts]|tcp)_\w+\.[ch]:\d+ +Assertion", file.read())

    def run(self, network):
        moved_at = time.monotonic()
        limit = moved_at + self.spec["join"] + 2 * PATIENT_DEADLINE
        undo, due, seen = [], None, self.stages[:]
        while self.processes:
            self.listen(0.0005 if self.harmed_at is None else 0.02)
            now = time.monotonic()
            if self.harmed_at is None and self.harm != "none":
                if due is None and self.is_time():
                    due = now + self.after
                if due is not None and now >= due:
                    undo = [(now + s, f) for s, f in self.do_harm(network)]
                    limit = now + self.known_after() + 3 * self.slack
            for at, mend in list(undo):
                if now >= at:
                    mend()
                    undo.remove((at, mend))
            if self.place == "namespaces" and self.harm in ("blackhole", "one way") and undo:
                if all(rank in {t["rank"] for t in self.told if t["what"] == "later" or
                                t.get("kind") == "done"} for rank in self.processes):
                    undo.pop()[1]()
            self.reap()
            if self.stages[:] != seen:
                seen, moved_at = self.stages[:], now
            if now > max(limit, moved_at + self.known_after() + 2 * self.slack) and self.processes:
                self.give_up()
        for _, mend in undo:
            mend()
        self.listen(0)

    def give_up(self):
        """Records the stacks of processes that hang, and ends them."""
        for rank, pid in self.processes.items():
            self.wrong.append(f"rank {rank} hangs at stage {self.stage(max(rank, 0))}")
            self.wrong.append(chaos_stacks.stacks_of(pid))
            self.killed.add(rank)
            for number in (signal.SIGKILL, signal.SIGCONT):
                os.kill(pid, number)  # a zombie at the least: it is reaped here

    # --- The verdict ------------------------------------------------------------------------------
    def known_after(self):
        if self.when == "join":
            return self.spec["join"] + KNOWN_AFTER.get(self.harm, 0)
        return KNOWN_AFTER.get(self.harm, 0)

    def world_rank(self, said):
        """Returns the world rank that an error names."""
        if said["peer"] < 0 or said.get("group", "world") == "world":
            return said["peer"]
        return 2 * said["peer"] + said["rank"] % 2

    def judge_end(self, rank, said):
        kind = said["kind"]
        allowed = ["done", *ALLOWED[self.harm]]
        if self.when == "join" and self.harm in ("kill", "cut"):
            allowed.append("RendezvousError")
        if rank in self.frozen or self.place == "mpi":
            allowed += ["DeadlineExceeded", "PeerDied", "Aborted"] if self.harm != "pause" else []
        if kind not in allowed:
            self.wrong.append(f"rank {rank} ended with {kind}: {said.get('text')}")
        elif kind == "PeerDied" and self.harm in ("kill", "kill two") and self.place != "mpi":
            if self.world_rank(said) not in self.killed:
                self.wrong.append(f"rank {rank} blames rank {said['peer']}: {said['text']}")
        elif kind == "PeerDied" and self.harm == "blackhole":
            if self.hosts[self.world_rank(said)] == self.hosts[rank]:
                self.wrong.append(f"rank {rank} blames its host-mate: {said['text']}")

    def judge(self):
        ends = {t["rank"]: t for t in self.told if t["what"] == "end"}
        for rank in range(1 if self.place == "threads" else self.size):
            if rank in self.killed:
                continue
            if rank not in ends:
                if not (self.place == "mpi" and self.harmed_at):  # mpirun ends them all
                    self.wrong.append(f"rank {rank} said nothing of its end")
                continue
            self.judge_end(rank, ends[rank])
            late = ends[rank]["at"] - (self.harmed_at or 1e9) - self.known_after()
            if rank not in self.frozen and ends[rank]["kind"] != "done" and late > self.slack:
                self.wrong.append(f"rank {rank} knew {late:.1f} s late: {ends[rank]}")
        for said in self.told:
            if said["what"] == "later" and said["took"] > 5 + self.slack:
                self.wrong.append(f"rank {said['rank']} learnt late that all was over: {said}")
        left = os.listdir(self.temporary) if self.place != "mpi" else []
        if left:
            self.wrong.append(f"left in the temporary folder: {left}")

    def outcome(self):
        kinds = collections.Counter(t["kind"] for t in self.told if t["what"] == "end")
        return ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))

    def close(self):
        self.socket.close()
        self.stages.close()
        return chaos_machine.take_outputs(self.folder)


def usable_places(wanted):
    missing = chaos_machine.missing_places(wanted, gpus=2) & set(HARMS)
    return [p for p in (wanted or ["shm", "shm", "algorithm", "threads", "pretended", "pretended",
                                   "namespaces", "namespaces", "mpi"]) if p not in missing], missing


def main():
    if sys.argv[1:2] == ["campaign"]:
        import campaign
        return campaign.main(sys.argv[2:])
    if sys.argv[1:2] == ["tables"]:
        import campaign_tables
        return campaign_tables.main(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--job", type=int, help="this one alone")
    parser.add_argument("--place", action="append", choices=sorted(HARMS))
    parser.add_argument("--harm", help="jobs with this one alone")
    parser.add_argument("--slack", type=float, default=10.0,
                        help="seconds that a busy machine may add to everything")
    arguments = parser.parse_args()
    seed = random.SystemRandom().randrange(10**6) if arguments.seed is None else arguments.seed
    shows = sys.stdout.isatty()
    places, missing = usable_places(arguments.place)
    if not places:
        parser.error(f"this machine has none of those places: {', '.join(sorted(missing))}")
    print(f"seed {seed}; places {', '.join(dict.fromkeys(places))}", flush=True)
    network = chaos_hosts.Namespaces(3) if "namespaces" in places else None
    gc.disable()  # children share this memory
    before = chaos_machine.leftovers()
    until = time.monotonic() + 60 * arguments.minutes
    done, failed, known = collections.Counter(), 0, 0
    numbers = itertools.count() if arguments.job is None else [arguments.job]
    try:
        for number in numbers:
            if time.monotonic() > until and arguments.job is None:
                break
            job = Job(seed, number, places, arguments.slack)
            if arguments.harm and job.harm != arguments.harm:
                continue
            if job.start(network):
                return 0  # as a rank
            job.run(network)
            job.judge()
            outcome, outputs = job.outcome(), job.close()
            done[f"{job.place}, {job.harm}"] += 1
            known += job.known
            if job.wrong:
                failed += 1
                print(f"\nFAILED seed {seed} {job}: {outcome}", *job.wrong, outputs,
                      sep="\n  ", flush=True)
            elif shows or arguments.job is not None:
                print(f"\r{job}: {outcome}", end="\033[K" if shows else "\n", flush=True)
        after = chaos_machine.leftovers()
        if after != before:
            failed += 1
            print(f"\nFAILED: left behind: {after}, before {before}")
    finally:
        if network is not None:
            network.close()
    print(f"\n{sum(done.values())} jobs, {failed} failed (seed {seed})")
    if known:
        print(f"{known} ranks were ended by UCX's own assertions")
    for what, number in sorted(done.items()):
        print(f"  {number:5} {what}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
