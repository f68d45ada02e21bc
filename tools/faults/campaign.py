"""The campaign: jobs of many rounds, a fault each, and a judge of what came of it.

    tools/faults/chaos.py campaign --minutes 60 --log FILE    # appends a line a fault
    tools/faults/chaos.py campaign --seed 7 --job 31          # the job that failed, once more
    tools/faults/chaos.py tables FILE...                      # into docs/reliability.md

A job's ranks, forked from here, play the rounds of its plan (campaign_plan.py, campaign_rank.py).
The end that each rank must have is computed from the plan, never from the outcome. Between rounds
the survivors go on. The campaign takes no more of the processor than `--cores`.
"""

import argparse
import collections
import contextlib
import functools
import gc
import itertools
import json
import os
import random
import re
import resource
import select
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import campaign_plan as plans
import campaign_rank
import chaos_hosts
import chaos_machine
import chaos_stacks
import hocket

# Seconds without a word of anybody after which a job hangs: longer than every deadline in it.
HANGS = 2 * plans.PATIENT + 15
NEWCOMERS = 400  # of a job


class Running:
    """One job: its processes, and their reports. A resource."""

    def __init__(self, job):
        self.job = job
        self.plan = list(job.plan())
        self.ends = collections.defaultdict(dict)  # by round: each rank's report, by rank
        self.rebuilt = {}  # by rank, after a cut: the members it went on with, and why it did not at last
        self.finished, self.wrong, self.rest = set(), [], b""
        self.codes, self.processes = {}, {}
        self.newcomers = 0

    # --- Starting ---------------------------------------------------------------------------------
    def start(self, network):
        """True in each process that is a rank and has ended as one."""
        self.folder = tempfile.mkdtemp(prefix="hocket-campaign-")
        self.temporary = f"{self.folder}/tmp"
        os.mkdir(self.temporary)
        os.mkfifo(f"{self.folder}/told")
        with open(f"{self.folder}/board", "wb") as board:
            board.write(bytes(campaign_rank.LINE * (self.job.size + 1)))
        self.pipe = os.open(f"{self.folder}/told", os.O_RDONLY | os.O_NONBLOCK)
        # The reader's own end for writing, until all have theirs.
        self.keeper = os.open(f"{self.folder}/told", os.O_WRONLY)
        self.key = bytes(random.Random(str(self.job)).randrange(256) for _ in range(32))
        self.port = random.randint(20_000, 29_999)
        self.group = None
        if self.job.place == "mpi":
            return self.start_mpi()
        for rank in range(1 if self.job.place == "threads" else self.job.size):
            if self.fork(rank, network):
                return True
        return False

    def fork(self, rank, network, newcomer=None):
        pid = os.fork()
        if pid == 0:
            self.be(rank, network, newcomer)
            return True
        with contextlib.suppress(OSError):
            os.setpgid(pid, self.group or pid)
        self.group = self.group or pid
        self.processes[rank] = pid
        return False

    def start_mpi(self):
        with open(f"{self.folder}/job", "w") as file:
            json.dump(self.job, file)
        launcher = chaos_machine.start_mpi(
            self.job.size, ["--mca", "mpi_yield_when_idle", "1"], campaign_rank.__file__, self.folder,
            self.folder, process_group=0)
        self.group = self.processes[-1] = launcher.pid
        self.launcher = launcher
        return False

    def be(self, rank, network, newcomer=None):
        job = self.job
        os.close(self.keeper)
        os.close(self.pipe)
        with contextlib.suppress(OSError):
            os.setpgid(0, self.group or 0)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        chaos_machine.redirect(self.folder, rank, plans.SILENCE)
        if job.place == "namespaces":
            network.enter(job.hosts[rank])
        if job.place in ("namespaces", "pretended"):
            chaos_hosts.tell_carriers_apart()
        if job.place in ("pretended", "newcomers on hosts"):
            os.environ["HOCKET_HOST"] = f"{job.hosts[rank]}/"
        if job.place == "threads":
            campaign_rank.be_threads(job, self.folder)
            return
        address = {"namespaces": f"10.78.0.2:{self.port}",
                   "pretended": f"127.0.0.1:{self.port}",
                   "newcomers on hosts": f"127.0.0.1:{self.port}"}.get(
                       job.place, f"unix:hocket-chaos-{os.getppid()}-{job.number}")
        door = f"{address}-door" if ":hocket" in address else f"127.0.0.1:{self.port + 1}"
        if newcomer is not None:
            fate = job.fate_of_newcomer(newcomer)
            if fate is not None:
                campaign_rank.signal_later(signal.SIGKILL, fate)
            comm = hocket.init(join=door, key=self.key, timeout=60)
            campaign_rank.be(job, rank, self.folder, comm, fate is not None)
            return
        if job.place in plans.REFILLED:
            os.environ["HOCKET_DOOR"] = door
        join = functools.partial(hocket.init, rank=rank, size=job.size, address=address, key=self.key,
                                 engines=[job.place] if job.place == "algorithm" else None)
        if "killed in init" in job.harms:
            campaign_rank.be_killed_in_init(job, rank, self.folder, join)
        else:
            campaign_rank.be(job, rank, self.folder, join(timeout=60))

    # --- Watching ---------------------------------------------------------------------------------
    def listen(self, seconds):
        """Reads the ranks' reports; returns false if no rank is left that could report."""
        if not select.select([self.pipe], [], [], seconds)[0]:
            return True
        with contextlib.suppress(BlockingIOError):
            while got := os.read(self.pipe, 1 << 16):
                *lines, self.rest = (self.rest + got).split(b"\n")
                for line in lines:
                    self.hear(json.loads(line))
                self.heard_at = time.monotonic()
            return False
        return True

    def hear(self, said):
        if said["what"] == "round":
            self.ends[said["round"]][said["rank"]] = said
        elif said["what"] == "rebuilt":
            self.rebuilt[said["rank"]] = (said["chain"], said["why_not"])
        elif said["what"] == "end":
            if not said["early"]:
                self.finished.add(said["rank"])
        else:
            self.wrong.append((said["round"], f"rank {said['rank']} cannot go on: {said['text']}"))

    def run(self, network):
        """Returns true in each process that was a newcomer and has ended."""
        self.heard_at = time.monotonic()
        while self.processes:
            self.listen(0.2)
            for rank, pid in list(self.processes.items()):
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    del self.processes[rank]
                    self.codes[rank] = os.waitstatus_to_exitcode(status)
                    self.listen(0)  # it may have said that it is at its end
                    if self.job.place in plans.REFILLED and rank not in self.finished:
                        self.newcomers += 1
                        if self.newcomers > NEWCOMERS or self.has_failed(rank, status):
                            self.wrong.append((self.last_round(), f"rank {rank} cannot go on"))
                            self.give_up()
                        elif self.fork(rank, network, self.newcomers):
                            return True
            if time.monotonic() > self.heard_at + HANGS and self.processes:
                self.give_up()
        os.close(self.keeper)
        until = time.monotonic() + 5
        while self.listen(0.2) and time.monotonic() < until:
            pass
        os.close(self.pipe)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.group, signal.SIGKILL)
            self.wrong.append((self.last_round(), "an orphan was left"))
        return False

    def has_failed(self, rank, status):
        """Returns true if a process has ended in another way than the plan's harms have it end."""
        return os.waitstatus_to_exitcode(status) == 1 and all(
            round_.harm != "exception" or rank not in round_.victims for round_ in self.plan)

    def last_round(self):
        return max(self.ends, default=0)

    def give_up(self):
        """Records the stacks of processes that hang, and ends them."""
        for rank, pid in self.processes.items():
            self.wrong.append((self.last_round(), f"rank {rank} hangs"))
            self.wrong.append((self.last_round(), chaos_stacks.stacks_of(pid)))
        for number in (signal.SIGKILL, signal.SIGCONT):
            with contextlib.suppress(ProcessLookupError):  # they have ended while gdb looked
                os.killpg(self.group, number)
        self.heard_at = time.monotonic()

    # --- The verdict ------------------------------------------------------------------------------
    def judge(self):
        """Judges every round; the lines for the log."""
        lines, reached = [], True
        for round_ in self.plan:
            harm, heard = plans.HARMS[round_.harm], self.ends.get(round_.number, {})
            if not reached:
                break
            wrong = []
            for rank in round_.members:
                if harm.dies >= 0 and rank in round_.victims:
                    if rank in heard:
                        wrong.append(f"rank {rank} was to end, and says {heard[rank]}")
                elif rank not in heard:
                    wrong.append(f"rank {rank} said nothing of its end")
                    reached = False
                else:
                    wrong += [f"rank {rank} {text}"
                              for text in plans.judge(round_, rank, heard[rank], heard)]
            if round_.harm in plans.CUTS:
                wrong += plans.judge_parts(round_, self.rebuilt)
            wrong += [text for number, text in self.wrong if number == round_.number]
            lines.append(self.line(round_, heard, wrong))
        self.judge_ends(lines[-1])
        if self.is_ended_by_ucx():
            # The others' reports of that cannot be better; they are not judged.
            for line in lines:
                line["known"], line["wrong"] = bool(line["wrong"]), []
        return lines

    def is_ended_by_ucx(self):
        """Returns true if an assertion of UCX (1.13) ended a rank. One fails on an answer to a
        dying process that had just begun to connect, others on a connection that breaks
        while it is made or closed.
        """
        return any(
            code == -signal.SIGABRT and re.search(
                r"\b(uc[pts]|tcp|wireup)_\w+\.[ch]:\d+ +Assertion",
                Path(f"{self.folder}/out{rank}").read_text(errors="replace"))
            for rank, code in self.codes.items() if rank >= 0)

    def line(self, round_, heard, wrong):
        survivors = [heard[rank] for rank in round_.survivors if rank in heard]
        kinds = {said["kind"] for said in survivors}
        return {"seed": self.job.seed, "job": self.job.number, "round": round_.number,
                "place": self.job.place, "ranks": len(round_.members), "harm": round_.harm,
                "came": " and ".join(sorted(kinds)) or "nothing",
                "took": [said["took"] for said in survivors if "took" in said], "wrong": wrong}

    def judge_ends(self, last):
        """Exit codes and leftovers."""
        dies = {}
        for round_ in self.plan[:last["round"] + 1]:
            if plans.HARMS[round_.harm].dies >= 0:
                for rank in round_.victims:
                    dies[rank] = round_.harm
        for rank, code in self.codes.items():
            if self.job.place in plans.REFILLED:
                expected = 0  # of the last process with that rank
            elif rank in dies and self.job.place != "threads":
                signalled = plans.HARMS[dies[rank]].dies
                expected = {"exit without a word": 3, "exec": 0, "early return": 0,
                            "exception": 1}.get(dies[rank], -signalled)
            else:
                expected = 0
            # Nor does MPI end in good order after a call has been abandoned.
            if code != expected and (rank, code) != (-1, 1):
                last["wrong"].append(f"rank {rank} ended with status {code}, not {expected}")
        left = [] if self.job.place == "mpi" else os.listdir(self.temporary)
        if left:
            last["wrong"].append(f"left in the temporary folder: {left}")

    def close(self):
        return chaos_machine.take_outputs(self.folder)


def usable_places(wanted):
    missing = chaos_machine.missing_places(wanted, gpus=1)
    everywhere = ["threads", "shm", "shm", "algorithm", "pretended", "pretended", "namespaces", "mpi",
                  "newcomers", "newcomers on hosts"]
    return [place for place in wanted or everywhere if place not in missing]


def throttle(began, cores):
    """Sleeps until this process and its children have used at most their part."""
    spent = sum(used.ru_utime + used.ru_stime for used in (
        resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)))
    time.sleep(max(0.0, spent / cores - (time.monotonic() - began)))


def head():
    done = subprocess.run(["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"],
                          capture_output=True, text=True, check=False)
    return done.stdout.strip()


def play(job, network):
    """One job to its end; None in its ranks."""
    running = Running(job)
    if running.start(network):
        return None
    if running.run(network):
        return None
    lines = running.judge()
    outputs = running.close()
    return lines, outputs


def main(arguments):
    parser = argparse.ArgumentParser(prog="chaos.py campaign", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--log", default=os.devnull, help="a line of JSON a fault is added to it")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--job", type=int, help="this one alone")
    parser.add_argument("--place", action="append", choices=sorted(plans.PLACES))
    parser.add_argument("--harm", action="append", choices=sorted(plans.HARMS), default=[],
                        help="jobs of one round, with one of these harms")
    parser.add_argument("--cores", type=float, default=1e9, help="processors to take, on average")
    chosen = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(10**6) if chosen.seed is None else chosen.seed
    places = [place for place in usable_places(chosen.place)
              if all(plans.may_come(harm, place) for harm in chosen.harm)]
    if not places:
        parser.error("this machine has none of those places")
    print(f"seed {seed}; places {', '.join(dict.fromkeys(places))}", flush=True)
    network = chaos_hosts.Namespaces(3) if "namespaces" in places else None
    gc.disable()  # children share this memory
    asked_to_end = []
    for number in (signal.SIGINT, signal.SIGTERM):  # after the job that runs
        signal.signal(number, lambda *_: asked_to_end.append(True))
    began, before = time.monotonic(), chaos_machine.leftovers()
    faults, failed, commit = 0, 0, head()
    draw = functools.partial(plans.Job.draw, places=places, may_mount=os.geteuid() == 0, harms=chosen.harm,
                             gpus=chaos_machine.count_gpus() if "gpus" in places else 0)
    try:
        with open(chosen.log, "a") as log:
            for number in itertools.count() if chosen.job is None else [chosen.job]:
                if chosen.job is None and time.monotonic() > began + 60 * chosen.minutes:
                    break
                if asked_to_end:
                    break
                job = draw(seed, number)
                played = play(job, network)
                if played is None:
                    return 0
                lines, outputs = played
                faults += sum(line["harm"] != "none" for line in lines)
                when = {"at": int(time.time()), "head": commit}
                log.writelines(json.dumps({**line, **when}) + "\n" for line in lines)
                log.flush()
                wrong = [line for line in lines if line["wrong"]]
                failed += len(wrong)
                for line in wrong:
                    print(f"\nFAILED seed {seed} job {number}, round {line['round']}: {line['harm']} "
                          f"in {job.place}, {line['ranks']} ranks", *line["wrong"], sep="\n  ")
                if wrong:
                    print(outputs, flush=True)
                throttle(began, chosen.cores)
        if (after := chaos_machine.leftovers()) != before:
            failed += 1
            print(f"\nFAILED: left behind: {after}, before {before}")
    finally:
        if network is not None:
            network.close()
    print(f"{faults} faults in {time.monotonic() - began:.0f} s, {failed} failed (seed {seed})")
    return 1 if failed else 0
