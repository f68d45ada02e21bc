"""A rank of the campaign: it plays rounds, each with a new group that suffers a fault.

It reports the end of each round to the runner, as lines of JSON in a named pipe. Ranks see each
other's progress in a shared file. So a rank that must be late or asleep stays so until the others
have ended.
"""

import contextlib
import ctypes
import errno
import gc
import itertools
import json
import mmap
import os
import resource
import signal
import struct
import subprocess
import sys
import threading
import time

import campaign_plan as plans
import chaos_hosts
import chaos_rank

import numpy as np

import hocket

LIBC = ctypes.CDLL(None, use_errno=True)
LINE = 64  # bytes a rank in the shared file, behind the first, which is the round's
MARKS = {"ended": 0, "awake": 8, "pid": 16, "met": 24, "here": 32}
FULL = "full"
UNNOTICED = 10.0  # seconds of calls that go well, after which a harm counts as not noticed


class Unharmed(Exception):
    """A victim's own exception, which its program catches."""


class Board:
    """A resource: the shared file, and the way to the runner."""

    def __init__(self, folder, rank):
        self.rank = rank
        self.pipe = os.open(f"{folder}/told", os.O_WRONLY)
        with open(f"{folder}/board", "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 0)
        self.mark("pid", os.getpid())

    def tell(self, **what):
        if "text" in what:
            what["text"] = what["text"][:700]
        os.write(self.pipe, json.dumps({"rank": self.rank, **what}).encode() + b"\n")  # in one piece

    def mark(self, what, value):
        struct.pack_into("q", self.memory, LINE * (self.rank + 1) + MARKS[what], value)

    def look(self, rank, what):
        return struct.unpack_from("q", self.memory, LINE * (rank + 1) + MARKS[what])[0]

    def await_marks(self, ranks, what, value):
        while any(self.look(rank, what) < value for rank in ranks):
            time.sleep(0.002)

    @property
    def harmed_at(self):
        return struct.unpack_from("d", self.memory, 0)[0]

    def harm(self, at=None):
        struct.pack_into("d", self.memory, 0, time.monotonic() if at is None else at)


def signal_later(number, seconds):
    """Sends this process a signal at that time, wherever it is then."""
    event = struct.pack("qii48x", 0, number, 0)
    timer = ctypes.c_void_p()
    when = struct.pack("qqqq", 0, 0, int(seconds), int(seconds % 1 * 1e9) + 1)
    if LIBC.timer_create(1, event, ctypes.byref(timer)) or LIBC.timer_settime(timer, 0, when, None):
        raise OSError(ctypes.get_errno(), "no timer")


def mount_full_disk(folder):
    """A disk without room for a byte, which this process alone sees."""
    where = f"{folder}/{FULL}{os.getpid()}"
    os.mkdir(where)
    if (LIBC.unshare(chaos_hosts.CLONE_NEWNS)
            or LIBC.mount(b"none", b"/", None, chaos_hosts.MS_SLAVE | chaos_hosts.MS_REC, None)
            or LIBC.mount(b"none", where.encode(), b"tmpfs", 0, b"size=16k")):
        raise OSError(ctypes.get_errno(), "cannot mount a small disk")
    try:
        with open(f"{where}/filler", "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
    return where


class Rank:
    """One rank in one round after the other. `base` is the communicator of all that live."""

    def __init__(self, job, rank, folder, comm):
        self.job, self.rank, self.folder, self.base = job, rank, folder, comm
        self.board = Board(folder, rank)
        self.xp = chaos_rank.arrays_of({"gpus": job.place == "gpus"}, rank)
        self.full = self.warden = None
        self.dooms = False  # a newcomer that dies before it takes part
        self.next_round = 0
        # Ranks of the plan, in the base's order. Newcomers take places of others there.
        self.places = list(range(job.size))

    def run(self):
        """All rounds; True where this rank's part ended before the job's."""
        if self.job.place in plans.REFILLED and self.base.newcomers:
            self.take_in()
            self.base.barrier()  # as the members do, see recover
        for round_ in self.job.plan():
            if round_.number < self.next_round:
                continue
            self.next_round = round_.number + 1
            if self.rank not in self.living():
                raise AssertionError("a rank that has died goes on")
            if self.play(round_):
                return True
        return False

    def living(self):
        return self.places if self.job.place in plans.REFILLED else list(self.base.world_ranks)

    # --- A round ----------------------------------------------------------------------------------
    def play(self, round_):
        harm = plans.HARMS[round_.harm]
        self.round = round_
        victim = self.rank in round_.victims
        self.entered = time.monotonic()
        others = [rank for rank in self.living() if rank not in round_.victims]
        end = {"kind": "right"}
        group = None
        try:
            self.board.mark("here", round_.number + 1)
            if round_.harm == "killed while a group is made" and victim:
                # A rank that finds it dead ends the calls of all, also the barrier before.
                self.board.await_marks(others, "here", round_.number + 1)
                self.die()
            group = self.make_group()
            if group is not None:
                end = self.come_to_harm(group, harm, victim)
        except hocket.Error as error:
            end = self.describe(error)
        if victim and len(round_.victims) > 1:
            self.die()  # it has heard of the other's death
        if end is None:
            return True
        if self.rank in round_.members:
            if round_.harm in plans.CUTS and end["kind"] == "right":
                end["then"] = "right"  # what others have lost may show at any time
            else:
                end["then"] = self.next_call(group)
            self.board.tell(what="round", round=round_.number, **end)
            self.board.mark("ended", round_.number + 1)
            self.wake()
        if group is not None and round_.number % 2:
            group.close()
        del group
        if round_.harm in plans.CUTS:
            chain, why_not = self.rebuild_after_a_cut()
            self.board.tell(what="rebuilt", round=round_.number, chain=chain, why_not=why_not)
        if round_.harm == "exception in a thread" or round_.harm in plans.CUTS or (
                harm.dies >= 0 and self.job.place not in plans.RESPAWNED):
            return True
        self.recover(harm)
        return False

    def make_group(self):
        round_, base = self.round, self.base
        self.members = list(round_.members)
        indices = [self.living().index(rank) for rank in round_.members]
        inside = self.rank in round_.members
        if round_.making == "duplicate":
            group = base.duplicate()
        elif round_.making == "new_group":
            group = base.new_group(indices)
        else:
            group = base.split(0 if inside else -1)
        if not inside:
            return None
        group.deadline = plans.PATIENT
        self.calls = chaos_rank.Calls(group, self.xp)
        return group

    def call(self, call, number):
        self.calls.number = number
        self.entered = time.monotonic()
        getattr(self.calls, call.name)(call.count, call.root)

    def come_to_harm(self, group, harm, victim):
        """Returns how this rank's calls ended; None if the rank must end with the round."""
        round_ = self.round
        for i, call in enumerate(round_.before):
            self.call(call, i)
        if harm.waits or round_.harm in ("stop and continue", "suspension"):
            # A rank's data may leave it only after its call has returned, and the rank that continues
            # it may wait for these data.
            self.call(plans.Call("barrier", 0, 0), 0)
            self.board.mark("met", round_.number + 1)
        if harm.waits:
            group.deadline = plans.SHORT
        if round_.harm == "suspension":
            group.deadline = plans.SUSPENDED
        try:
            if victim or harm.kind == "right":
                act = getattr(self, "do_" + round_.harm.replace(" ", "_").replace("()", ""), None)
                if act is not None and act(group):
                    return None
            if not victim and round_.harm in ("stop and continue", "stop within a call"):
                self.help_with_stops()
            self.go_on(group, harm, victim)
            return {"kind": "right"}
        except hocket.Error as error:
            return self.describe(error)
        except chaos_rank.WrongResult as error:
            return {"kind": "!WrongResult", "text": str(error)}

    def go_on(self, group, harm, victim):
        """Calls, until one fails; with harms that do none, a few."""
        round_ = self.round
        if harm.kind == "InvalidArgument":
            self.entered = time.monotonic()
            if victim:
                self.board.harm()
            x = self.xp.zeros(round_.during[0].count)
            self.calls.call("all_reduce", x, out=self.xp.zeros(x.size + victim))
            raise chaos_rank.WrongResult("a refused call ended well")
        if round_.harm == "killed while others receive":
            self.receive_from_anybody(group)
        if round_.harm in ("slow operator", "operator beyond the deadline"):
            self.reduce_slowly(harm, victim)
        if round_.different:
            self.differ(group, victim)
        # After a cut nobody may notice anything. All ranks then make the same number of calls; a time
        # would end them after different numbers, and the others would wait.
        most = {"right": 3}.get(harm.kind, 40 if round_.harm in plans.CUTS else None)
        until = time.monotonic() + UNNOTICED
        for i in itertools.count() if most is None else range(most):
            if most is None and time.monotonic() > until:
                return
            self.call(round_.during[i % 3] if i < 300 else plans.Call("barrier", 0, 0), 10 + i)

    def receive_from_anybody(self, group):
        """Receives in one of several ways; no rank sends."""
        x = np.zeros(3)
        ways = [lambda: group.recv(x, tag=98), lambda: group.recv_async(x, tag=98).wait(),
                lambda: group.recv_object(tag=98), lambda: group.probe(tag=98)]
        ways[(self.round.number + self.rank) % len(ways)]()
        raise chaos_rank.WrongResult("a receive ended well, and nobody had sent")

    def reduce_slowly(self, harm, victim):
        """A sum by a function of Python's, in which the victim sleeps."""
        def add(a, b):
            if victim:
                self.board.harm()
                time.sleep(1.5 * plans.SHORT if harm.waits else 5 * self.round.delay)
            return a + b

        self.entered = time.monotonic()
        x = np.full(100, 2.0 ** self.members.index(self.rank))
        total = self.calls.comm.all_reduce(x, op=hocket.Operator(add))
        chaos_rank.check("all_reduce by an operator", total, np.full(100, 2.0 ** len(self.members) - 1))

    def differ(self, group, victim):
        call, other = round_different(self.round.different)
        name, way = (other, "") if victim and other else (call, self.round.harm if victim else "")
        count = self.round.during[0].count + (way == "other count")
        dtype = "int32" if way == "other element type" else "float32"
        options = {"op": "max"} if way == "other operator" else {}
        n = group.size
        if name in ("broadcast", "gather", "reduce"):
            root = (self.round.during[0].root + (way == "other root")) % n
            options["root"] = root
        if victim:
            self.board.harm()
        self.entered = time.monotonic()
        if name == "barrier":
            group.barrier()
        elif name in ("reduce_scatter", "all_to_all"):
            self.calls.call(name, self.xp.ones((n, count), dtype), **options)
        else:
            self.calls.call(name, self.xp.ones(count, dtype), **options)

    def describe(self, error):
        ended = time.monotonic()
        status = getattr(error, "status", None)
        began = max(self.board.harmed_at, self.entered)
        if isinstance(error, hocket.DeadlineExceeded) and plans.HARMS[self.round.harm].waits:
            began += plans.SHORT
        peer = getattr(status, "peer", -1)
        # The base's members are the group's, where it could not be made.
        return {"kind": type(error).__name__, "text": str(error), "entered": self.entered,
                "culprit": self.known(peer), "signal": int(getattr(error, "signal", 0) or 0),
                "missing": [self.known(r) for r in getattr(error, "missing", ())],
                "calls": [self.known(c.rank) for c in getattr(error, "calls", ())],
                "took": max(0.0, ended - began)}

    def known(self, rank):
        members = self.round.members
        return members[rank] if 0 <= rank < len(members) else -1

    def next_call(self, group):
        """Returns how a call ends that is made after the round's end."""
        comm = self.base if group is None else group
        try:
            if plans.HARMS[self.round.harm].usable:
                self.call(plans.Call("all_reduce", 100, 0), 777)
            else:
                comm.barrier(timeout=5)
            return "right"
        except hocket.Error as error:
            return type(error).__name__
        except chaos_rank.WrongResult as error:
            return f"!WrongResult {error}"

    def recover(self, harm):
        """The base, in good order, of all that live."""
        round_ = self.round
        try:
            if harm.dies >= 0 and self.job.place in plans.REFILLED:
                if round_.falls == self.rank:
                    signal_later(signal.SIGKILL, 10 * round_.delay)
                self.take_in(len(round_.victims))
            elif harm.dies >= 0:
                left = [rank for rank in self.living() if rank not in round_.victims]
                old = self.base
                self.base = old.rebuild(timeout=plans.PATIENT, allow_minority=True)
                old.close()
                self.base.deadline = plans.PATIENT
                if self.living() != left:
                    raise AssertionError(f"rebuilt of {self.living()}, not {left}")
            self.base.barrier()
        except (hocket.Error, AssertionError) as error:
            self.board.tell(what="lost", round=round_.number, text=f"{type(error).__name__}: {error}")
            raise

    def take_in(self, missing=0):
        """Makes the base whole, after so many deaths: newcomers take the places of the dead.

        Others may die meanwhile, and newcomers, too. No rank leaves this before all are there.
        """
        until = time.monotonic() + 2 * plans.PATIENT
        base, round_ = self.base, getattr(self, "round", None)
        while True:
            try:
                if missing:
                    old = base
                    base = old.admit(missing, patience=plans.PATIENT, deadline=plans.PATIENT,
                                     allow_minority=True)
                    old.close()
                base.deadline = plans.PATIENT
                if round_ is not None and round_.falls == self.rank:
                    os.kill(os.getpid(), signal.SIGKILL)  # at the latest
                if self.dooms:
                    os.kill(os.getpid(), signal.SIGKILL)
                told = base.all_gather_object((self.rank, self.next_round))
                missing = self.job.size - base.size
                if missing == 0:
                    break
            except (hocket.PeerDied, hocket.Aborted):
                missing = 1
            if time.monotonic() > until:
                raise AssertionError(f"{base.size} of {self.job.size} ranks, after {2 * plans.PATIENT} s")
        self.places = sorted(rank for rank, _ in told)
        self.next_round = max(following for _, following in told)
        if self.places != [rank for rank, _ in told]:
            base = base.split(0, self.rank)
            base.deadline = plans.PATIENT
        self.base = base

    def rebuild_after_a_cut(self):
        """Returns the members of each next communicator, and why this rank is not in a last one that works.

        Communicators may be made before the hosts notice all that is cut.
        """
        comm, chain = self.base, []
        while True:
            try:
                comm = comm.rebuild(timeout=plans.PATIENT)
            except hocket.Error as error:
                return chain, f"{type(error).__name__}: {error}"
            comm.deadline = plans.PATIENT
            chain.append(list(comm.world_ranks))
            with contextlib.suppress(hocket.PeerDied):
                for _ in range(3):
                    comm.barrier()
                return chain, ""

    # --- Harms, done by the victim ----------------------------------------------------------------
    def do_slow_rank(self, group):
        if self.rank in self.round.victims:
            self.board.harm()
            time.sleep(5 * self.round.delay)

    def do_stop_and_continue(self, group):
        if self.rank in self.round.victims:
            self.do_stop(group)

    def do_stop(self, group):
        # The victim waits until the survivors have passed the barrier: its own data for it may not
        # have left yet, and the rank that wakes it up later must pass the barrier first.
        self.board.await_marks(self.round.survivors, "met", self.round.number + 1)
        self.board.harm()
        os.kill(os.getpid(), signal.SIGSTOP)
        self.board.mark("awake", self.round.number + 1)

    def do_suspension(self, group):
        """One rank has all processes of the job stopped, for longer than the deadline."""
        if self.rank != self.round.helper:
            return
        pids = " ".join(str(self.board.look(rank, "pid")) for rank in self.living())
        self.board.harm()
        # A process that is not stopped itself wakes them up.
        self.warden = subprocess.Popen(
            ["sh", "-c", f"sleep {self.round.delay:.4f}; kill -STOP {pids}; "
                         f"sleep {1.5 * plans.SUSPENDED}; kill -CONT {pids}"])

    def do_full_disk(self, group):
        if self.full is None:
            self.full = mount_full_disk(self.folder)
        try:
            group.dump(self.full)
        except hocket.SystemError_ as error:
            if error.errno == errno.ENOSPC:
                return
            raise
        raise chaos_rank.WrongResult("dump wrote to a full disk")

    def do_refuse(self, group):
        self.board.harm()
        group.refuse(plans.REASON)

    def do_abort(self, group):
        self.board.harm()
        group.abort(plans.REASON)

    def pending(self, group):
        """A receive that no rank answers; of the host, as messages of GPUs have no tags."""
        source = (group.rank + 1) % group.size
        return group.recv_async(np.zeros(3), source, tag=99)

    def do_close_with_calls_under_way(self, group):
        work = self.pending(group)
        self.board.harm()
        group.close()
        del work

    def do_pending_work_dropped(self, group):
        work = self.pending(group)
        self.board.harm()
        del work
        gc.collect()

    def do_exception_in_a_with_block(self, group):
        try:
            with group:
                work = self.pending(group)
                self.board.harm()
                raise Unharmed(work)
        except Unharmed:
            pass

    def do_close(self, group):
        self.board.harm()
        group.close()

    def do_rank_that_does_not_come(self, group):
        self.board.harm()
        self.board.await_marks(self.round.survivors, "ended", self.round.number + 1)

    def do_circle(self, group):
        self.board.harm()
        self.entered = time.monotonic()
        group.recv(np.zeros(3), source=(group.rank + 1) % group.size, tag=97)

    def die(self, number=signal.SIGKILL):
        self.board.harm()
        os.kill(os.getpid(), number)

    def do_kill(self, group):
        self.die()

    do_two_killed = do_kill

    def do_kill_within_a_call(self, group, number=signal.SIGKILL):
        self.board.harm(time.monotonic() + self.round.delay)
        signal_later(number, self.round.delay)

    def do_killed_while_others_receive(self, group):
        time.sleep(self.round.delay)
        self.die()

    def do_segmentation_fault(self, group):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if self.round.number % 2:
            self.do_kill_within_a_call(group, signal.SIGSEGV)
        else:
            self.board.harm()
            ctypes.string_at(0)

    def do_abort_of_the_process(self, group):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        self.board.harm()
        os.abort()

    def do_exit_without_a_word(self, group):
        self.board.harm()
        os._exit(3)

    def do_exec(self, group):
        self.board.harm()
        os.execv("/bin/true", ["true"])

    def do_early_return(self, group):
        self.board.harm()
        return True

    def do_exception(self, group):
        self.board.harm()
        raise Unharmed("as a program that has a bug")

    do_exception_in_a_thread = do_exception

    def do_connection_cut(self, group):
        if self.rank in self.round.victims:
            self.board.harm()
            for fd in chaos_hosts.sockets_of(os.getpid()):
                if chaos_hosts.cut(os.getpid(), fd):
                    return

    def do_messages_cut(self, group):
        self.cut_all(chaos_hosts.is_of_ucx)

    def do_lanes_cut(self, group):
        self.cut_all(lambda fd: not chaos_hosts.is_of_ucx(fd))

    def cut_all(self, is_meant):
        if self.rank not in self.round.victims:
            return
        self.board.harm()
        for fd in chaos_hosts.sockets_of(os.getpid()):
            if is_meant(fd):
                chaos_hosts.cut(os.getpid(), fd)

    # --- Done by another --------------------------------------------------------------------------
    def help_with_stops(self):
        round_, board = self.round, self.board
        if self.rank != round_.helper:
            return
        victim = board.look(round_.victims[0], "pid")

        def go():
            time.sleep(round_.delay)
            if round_.harm == "stop within a call":
                board.harm()
                os.kill(victim, signal.SIGSTOP)
                return
            time.sleep(3 * round_.delay)
            self.rouse()

        threading.Thread(target=go, daemon=True).start()

    def rouse(self):
        victim, now = self.round.victims[0], self.round.number + 1
        pid = self.board.look(victim, "pid")
        while max(self.board.look(victim, "awake"), self.board.look(victim, "ended")) < now:
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.005)

    def wake(self):
        """After the round: a stopped rank goes on when all others have ended."""
        if self.warden is not None:
            self.warden.wait()
            self.warden = None
        if self.round.harm in ("stop", "stop within a call") and self.rank == self.round.helper:
            self.board.await_marks(self.round.survivors, "ended", self.round.number + 1)
            self.rouse()


def round_different(different):
    return (*different, "")[:2]


def be(job, rank, folder, comm, dooms=False):
    """Returns true if the rank must end at once, in good order."""
    player = Rank(job, rank, folder, comm)
    player.dooms = dooms
    comm.deadline = plans.PATIENT
    early = player.run()
    player.board.tell(what="end", early=early)
    if not early and (job.number + rank) % 2:
        player.base.close()


def be_killed_in_init(job, rank, folder, join):
    """One rank of a job in which one is killed while all join, or soon after."""
    board, [round_] = Board(folder, rank), job.plan()
    fate = job.fate_in_init(rank)
    if fate is not None:
        signal_later(signal.SIGKILL, fate)
    began, comm, end = time.monotonic(), None, {"culprit": -1, "signal": 0}
    try:
        comm = join(timeout=plans.JOINING)
        comm.deadline = plans.PATIENT
        while True:
            comm.barrier()
    except hocket.PeerDied as error:
        end = {"culprit": error.status.peer, "signal": int(error.signal or 0)}
        raised = error
    except hocket.Error as error:
        raised = error
    kind = type(raised).__name__
    end |= {"kind": kind, "text": str(raised), "then": kind}
    if comm is None:
        end["joined_for"] = time.monotonic() - began
    board.tell(what="round", round=round_.number, **end)
    board.tell(what="end", early=False)


def be_threads(job, folder):
    def body(comm):
        be(job, comm.rank, folder, comm)

    try:
        hocket.run_threads(body, job.size)
    except Unharmed:
        pass


if __name__ == "__main__":  # under mpirun
    folder = sys.argv[1]
    with open(f"{folder}/job") as file:
        job = plans.Job(*json.load(file))
    number = int(os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", "0")))
    be(job, number, folder, hocket.init(timeout=60, engines=["mpi"]))
