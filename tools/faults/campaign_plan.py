"""Rounds of the campaign: the fault, its victims, and the required outcome.

All ranks and the judge draw the same round from seed, job and number. The job does not agree on any
of it while it runs. A rank is known by its number in the job, which it keeps when others die.
"""

import itertools
import random
import re
import signal
from typing import NamedTuple

PATIENT = 30.0  # the deadline if no rank is late
SHORT = 0.5  # if a rank is late
SUSPENDED = 3.0  # if the whole job is stopped, for half as long again
JOINING = 6.0  # the timeout of `init` if a rank is killed in it
SILENCE = 3.0
REASON = "the loss is not a number"


CLOSED, LEFT = "closed the communicator", "ended in good order"
OF_A_THREAD = "its thread has raised"
RETURNED = "has returned from what it was called for"  # of a rank that is a thread
ON_GPUS = "refused a call that others had put on their GPUs"


class Harm(NamedTuple):
    """A value: what must come of a harm.

    `kind`: how every survivor's calls end; "right": with right results and nothing else.
    `named`: the error names a victim. `word`: its text contains this. `dies`: the signal that
    kills the victim, 0 if it ends by itself, -1 if it lives; `own`: how its calls end then.
    `waits`: survivors wait until their deadline. `lasts`: the round takes seconds, and is drawn less
    often. `usable`: the communicator stays usable.
    `closes`: the victim closes its communicators before it ends. Survivors may hear of that
    first: an Aborted that says so."""

    kind: str
    named: bool = True
    word: str = ""
    dies: int = -1
    own: str = ""
    waits: bool = False
    lasts: bool = False
    usable: bool = False
    victims: int = 1
    closes: bool = False


HARMS = {
    "none": Harm("right", named=False, own="right", usable=True),
    # The victim comes late, or is stopped and goes on, within the deadline.
    "slow rank": Harm("right", named=False, own="right", usable=True),
    "stop and continue": Harm("right", named=False, own="right", usable=True),
    # The victim's function takes its time, within the deadline.
    "slow operator": Harm("right", named=False, own="right", usable=True),
    # All of the job's processes are stopped, for longer than the deadline, and go on.
    "suspension": Harm("right", named=False, own="right", usable=True, lasts=True),
    # Every rank's folder for flight records is on a disk without room.
    "full disk": Harm("right", named=False, own="right", usable=True),
    "refused argument": Harm("InvalidArgument", word="refused", own="InvalidArgument", usable=True),
    "refuse()": Harm("InvalidArgument", word=REASON, own="InvalidArgument", usable=True),
    "other element type": Harm("Mismatch", own="Mismatch"),
    "other operator": Harm("Mismatch", own="Mismatch"),
    "other count": Harm("Mismatch", own="Mismatch"),
    "other root": Harm("Mismatch", own="Mismatch"),
    "other call": Harm("Mismatch", own="Mismatch"),
    "abort()": Harm("Aborted", word=REASON, own="Aborted"),
    "close with calls under way": Harm("Aborted", own="InvalidArgument"),
    "pending work dropped": Harm("Aborted", own="Aborted"),
    "exception in a with block": Harm("Aborted", own="InvalidArgument"),
    "close": Harm("Aborted", word=CLOSED, own="InvalidArgument"),
    # The victim receives from a rank that waits for it in a collective.
    "circle": Harm("DeadlockError", named=False, word="wait for each other", own="DeadlockError"),
    # Beyond the deadline.
    "rank that does not come": Harm("DeadlineExceeded", own="DeadlineExceeded", waits=True),
    "stop": Harm("DeadlineExceeded", own="DeadlineExceeded", waits=True),
    "stop within a call": Harm("DeadlineExceeded", own="DeadlineExceeded", waits=True),
    "operator beyond the deadline": Harm("DeadlineExceeded", named=False, own="DeadlineExceeded",
                                         waits=True),
    # The victim's process, or its thread, ends.
    "killed in init": Harm("PeerDied", dies=signal.SIGKILL),
    "kill": Harm("PeerDied", dies=signal.SIGKILL),
    "kill within a call": Harm("PeerDied", dies=signal.SIGKILL),
    "two killed": Harm("PeerDied", dies=signal.SIGKILL, victims=2),
    "killed while a group is made": Harm("PeerDied", dies=signal.SIGKILL),
    "killed while others receive": Harm("PeerDied", dies=signal.SIGKILL),  # from any rank
    "segmentation fault": Harm("PeerDied", dies=signal.SIGSEGV),
    "abort of the process": Harm("PeerDied", dies=signal.SIGABRT),
    "exit without a word": Harm("PeerDied", dies=0),
    "exec": Harm("PeerDied", dies=0),
    "early return": Harm("PeerDied", word=LEFT, dies=0, closes=True),
    "exception": Harm("PeerDied", word="raised", dies=0, closes=True),
    "exception in a thread": Harm("PeerDied", word="raised", dies=0, closes=True),
    # One rank's connection to another host is cut: they lose each other, or connect again.
    "connection cut": Harm("PeerDied", named=False, own="PeerDied"),
    # Single carriers: one rank's lanes, which are made anew, or all that it has of UCX.
    "lanes cut": Harm("right", named=False, own="right", usable=True),
    "messages cut": Harm("PeerDied", named=False, own="PeerDied"),
}
DEADLY = [name for name, harm in HARMS.items()
          if harm.dies >= 0 and name not in ("exception in a thread", "killed in init")]
CUTS = ("connection cut", "messages cut")  # after these, ranks may have lost each other
SOFT = [name for name, harm in HARMS.items()
        if harm.dies < 0 and name not in (*CUTS, "lanes cut", "none")]
# Deadlocks are proven among ranks of one host alone.
ON_HOSTS = [name for name in SOFT if name != "circle"]
CARRIERS = ["connection cut", "lanes cut", "messages cut"]
OF_PROCESSES = ("stop and continue", "suspension", "stop", "stop within a call", "full disk")
OF_THREADS = [name for name in SOFT if name not in OF_PROCESSES]
# Open MPI 4.1 writes where it should not when the parts of a collective do not fit together.
BY_MPI = [name for name in OF_THREADS if HARMS[name].kind not in ("Mismatch", "DeadlockError")]
# By place. The second list has the faults of a job's last round, after which no rank goes on.
PLACES = {"threads": (OF_THREADS, ["early return", "exception in a thread"]), "shm": (SOFT, []),
          "algorithm": (SOFT, []), "pretended": (ON_HOSTS, CARRIERS),
          "namespaces": (ON_HOSTS, CARRIERS), "mpi": (BY_MPI, []),
          "gpus": (ON_HOSTS, []), "newcomers": (SOFT, []), "newcomers on hosts": (ON_HOSTS, [])}
# Places in which the others go on after a rank has died.
RESPAWNED = ("shm", "algorithm", "pretended", "namespaces", "gpus", "newcomers", "newcomers on hosts")
# Places in which newcomers replace the dead, so that a job has all its ranks in each round.
REFILLED = ("newcomers", "newcomers on hosts")
BETWEEN_HOSTS = ("pretended", "namespaces", "newcomers on hosts")
# Places in which a rank is also killed in `init`. It ends the job.
JOINED = ("shm", "algorithm", "pretended", "namespaces")



def may_come(harm, place):
    """Returns true if that harm can come to a rank in that place."""
    if harm == "killed in init":
        return place in JOINED
    return harm in itertools.chain(*PLACES[place], DEADLY if place in RESPAWNED else [])


# The call that all but the victim make, and what the victim makes of it.
DIFFERENT = {
    "other element type": [("all_reduce",), ("broadcast",), ("all_gather",), ("reduce_scatter",)],
    "other operator": [("all_reduce",), ("reduce_scatter",)],
    "other count": [("all_reduce",), ("all_gather",), ("all_to_all",), ("broadcast",)],
    "other root": [("broadcast",), ("gather",), ("reduce",)],
    "other call": list(itertools.permutations(
        ["all_reduce", "all_gather", "barrier", "broadcast", "reduce_scatter"], 2)),
}
CALLS = ["all_reduce", "all_reduce", "maximum", "broadcast", "all_gather", "reduce",
         "reduce_scatter", "all_to_all", "gather", "scatter", "ring", "many", "things", "barrier"]
# No rank ends these calls before all have come, so no rank is a call ahead.
TOGETHER = ["all_reduce", "maximum", "all_gather", "all_to_all", "barrier"]
NOT_BY_MPI = ("ring", "many", "things")
COUNTS = [1, 3, 100, 1000, 1000, 20_000]
LARGE = 200_000


class Call(NamedTuple):
    name: str  # a method of chaos_rank.Calls
    count: int
    root: int


class Round(NamedTuple):
    """A value. `members` are the ranks of the round's group, in its order. `before` is called in
    good order, `during` in turn until the fault shows. `different` describes a mismatch.
    """

    number: int
    harm: str
    members: tuple
    victims: tuple
    making: str
    before: tuple
    during: tuple
    different: tuple
    delay: float
    falls: int = -1  # a rank that also dies, while newcomers are taken in; -1: none

    @property
    def survivors(self):
        return [rank for rank in self.members if rank not in self.victims]

    @property
    def helper(self):
        """The rank that stops the victim, or wakes it up."""
        return self.survivors[0]


class Job(NamedTuple):
    """A value: what a job is, by its seed and number."""

    seed: int
    number: int
    place: str
    size: int
    hosts: tuple
    rounds: int
    may_mount: bool  # a small disk that no other process sees
    harms: tuple = ()  # if not empty: jobs of one round, with one of these

    @staticmethod
    def draw(seed, number, places, gpus, may_mount, harms=()):
        draw = random.Random(f"{seed}:{number}")
        place = draw.choice(places)
        # Ranks have a GPU each, or share the only one.
        size = draw.randint(2, {"mpi": 3, "gpus": gpus if gpus > 1 else 3}.get(place, 6))
        hosts = draw.randint(2, 3) if place in BETWEEN_HOSTS else 1
        if not harms and place in JOINED and random.Random(f"{seed}:{number}:init").random() < 0.15:
            harms = ("killed in init",)
        return Job(seed, number, place, size,
                   tuple(i if i < hosts else draw.randrange(hosts) for i in range(size)),
                   1 if harms else draw.choice([8, 20, 60]) if place != "mpi" else 200, may_mount,
                   tuple(harms))

    @property
    def share_of_deaths(self):
        return 0.6 if self.place in REFILLED else 0.25

    def fate_of_newcomer(self, number):
        """Returns after how many seconds the newcomer of that number kills itself; None: never."""
        draw = random.Random(f"{self.seed}:{self.number}:newcomer {number}")
        return draw.choice([0.002, 0.03, 0.2]) * draw.random() if draw.random() < 0.25 else None

    def fate_in_init(self, rank):
        """Returns how many seconds after it calls `init` the rank kills itself; None: never."""
        if "killed in init" not in self.harms or rank not in next(self.plan()).victims:
            return None
        draw = random.Random(f"{self.seed}:{self.number}:killed in init")
        return draw.choice([0.01, 0.03, 0.1]) * draw.uniform(0.2, 1.0)

    def plan(self):
        """Yields the rounds, in turn. A rank that has died is in no later one."""
        draw = random.Random(f"{self.seed}:{self.number}:rounds")
        soft, at_last = PLACES[self.place]
        soft = ["none", *(name for name in soft if name != "full disk" or self.may_mount)]
        weights = [0.25 if name == "none" or HARMS[name].waits else 0.1 if HARMS[name].lasts else 1.0
                   for name in soft]
        living = list(range(self.size))
        for number in range(self.rounds):
            harm = draw.choices(soft, weights)[0]
            if self.harms:
                harm = draw.choice(self.harms)
            elif at_last and number + 1 == self.rounds and len(living) == self.size:
                harm = draw.choice(at_last)
            elif self.place in RESPAWNED and len(living) > 2 and draw.random() < self.share_of_deaths:
                harm = draw.choice(DEADLY)
            if harm == "two killed" and len(living) < 4:
                harm = "kill"
            round_ = self.draw_round(draw, number, harm, living)
            yield round_
            if HARMS[harm].dies >= 0 and self.place not in REFILLED:
                living = [rank for rank in living if rank not in round_.victims]

    def draw_round(self, draw, number, harm, living):
        victims = draw.sample(living, HARMS[harm].victims)
        members, making = living, draw.choice(["duplicate", "new_group", "split"])
        if HARMS[harm].dies < 0 and harm not in CUTS and making != "duplicate":
            others = [rank for rank in living if rank not in victims]
            chosen = draw.sample(others, draw.randint(1, len(others))) + victims
            members = [rank for rank in living if rank in chosen]
        names = [name for name in CALLS if self.place != "mpi" or name not in NOT_BY_MPI]

        def calls(number, names=names):
            return tuple(
                Call(draw.choice(names), LARGE if draw.random() < 0.02 else draw.choice(COUNTS),
                     draw.randrange(len(members))) for _ in range(number))

        before = calls(draw.randint(0, 2))
        if len(victims) > 1:
            before = ()  # in which the second would hear of the first
        falls = -1
        others = [rank for rank in living if rank not in victims]
        if self.place in REFILLED and HARMS[harm].dies >= 0 and len(others) > 1 and draw.random() < 0.3:
            falls = draw.choice(others)
        return Round(number, harm, tuple(members), tuple(victims), making, before,
                     calls(3, TOGETHER if HARMS[harm].waits or harm == "circle" else names),
                     draw.choice(DIFFERENT.get(harm, [()])),
                     draw.choice([0.0005, 0.003, 0.02]) * draw.random(), falls)


def judge(round_, rank, said, heard):
    """Returns the errors in the end that `rank` reported; `heard` has the reports of all
    members, by rank.
    """
    harm = HARMS[round_.harm]
    if round_.harm == "killed in init" and said["kind"] == "RendezvousError":
        return judge_rendezvous(round_, said)
    is_victim = rank in round_.victims
    kind, word = harm.own if is_victim else harm.kind, harm.word
    usable = harm.usable
    if harm.kind == "InvalidArgument" and any(ON_GPUS in end.get("text", "") for end in heard.values()):
        usable = False  # by who had put the call on its GPU, where it cannot be taken back
        if ON_GPUS in said.get("text", "") and not is_victim:
            kind = "Aborted"
    if harm.closes and said["kind"] == "Aborted":
        kind, word = "Aborted", OF_A_THREAD if OF_A_THREAD in said["text"] else CLOSED
    wrong = []
    if said["kind"] != kind and not (round_.harm in CUTS and said["kind"] == "right"):
        return [f"ended with {said['kind']}, not with {kind}: {said.get('text')}"]
    ended = "Aborted" if harm.usable and not usable else kind
    if said["then"] != ("right" if usable or said["kind"] == "right" else ended):
        wrong.append(f"ended with {kind}, and the next call with {said['then']}")
    if said["kind"] == "right" or (is_victim and kind == "InvalidArgument"):
        return wrong
    text = said["text"]
    if was_told(said, heard) and LEFT in text:
        word = LEFT
    if round_.harm == "early return" and RETURNED in text:
        word = RETURNED
    if word not in text:
        wrong.append(f"the text has no {word!r}: {text}")
    if kind == "Mismatch":
        if not set(said["calls"]) & set(round_.victims):
            wrong.append(f"the calls that differ are of ranks {said['calls']}: {text}")
    elif kind == "DeadlineExceeded":
        wrong += judge_missing(round_, said, heard)
    elif harm.named and said["culprit"] not in round_.victims and not was_told(said, heard):
        wrong.append(f"blames rank {said['culprit']}: {text}")
    if kind == "PeerDied" and said["signal"] not in (0, max(harm.dies, 0)):
        wrong.append(f"says signal {said['signal']}: {text}")
    return wrong


def judge_rendezvous(round_, said):
    """Checks how `init` failed: by a rank that was killed in it, which the error names. The ranks
    wait only for one that was killed before it had come to the store.
    """
    [victim] = round_.victims
    text = said["text"]
    if not re.search(rf"\brank {victim}\b", text):
        return [f"does not name rank {victim}: {text}"]
    seconds = said["joined_for"]
    if seconds > JOINING / 2 and not re.search("had not come|no store could be reached", text):
        return [f"took {seconds:.1f} s to say: {text}"]
    return []


def outweighs(part, members):
    """Returns true if the part is more than half of the members, or half with the first of them."""
    more = 2 * len(part) - len(members)
    return more > 0 or (more == 0 and members[0] in part)


def judge_parts(round_, rebuilt):
    """Returns the errors in what came of `rebuild` after a cut. `rebuilt` has, by rank, the members of
    each next communicator, and why there was no last one that works; empty: there was.
    """
    parts = {tuple(chain[-1]) for chain, why_not in rebuilt.values() if not why_not}
    wrong = [] if len(parts) == 1 else [f"there are {len(parts)} parts that go on"]
    for rank in {rank for part in parts for rank in part}:
        if rebuilt.get(rank, ("", "it said nothing"))[1]:
            wrong.append(f"rank {rank} is to go on, and does not")
    for chain, _ in rebuilt.values():
        for before, after in itertools.pairwise([list(round_.members), *chain]):
            if not outweighs(after, before):
                wrong.append(f"{after} go on, which are not the greater part of {before}")
    return [f"{text}: {rebuilt}" for text in wrong]


def was_told(said, heard):
    """Returns true if the blamed rank had heard of a thread's end in an earlier call, and had
    left because of it.
    """
    return OF_A_THREAD in heard.get(said["culprit"], {}).get("text", "")


def judge_missing(round_, said, heard):
    """Checks the ranks that are reported as missing: the victim, and any rank that came to the
    call after the first deadline. A rank that is stopped within a call may have done its part
    for some of the others. Then others wait for those that still wait in that call.
    """
    missing = set(said["missing"])
    if round_.harm in ("stop within a call", "operator beyond the deadline"):
        return []
    if not missing & set(round_.victims):
        return [f"says that {sorted(missing)} are missing: {said['text']}"]
    first = min(end["entered"] for end in heard.values() if "entered" in end)
    late = [rank for rank in missing - set(round_.victims)
            if heard.get(rank, {}).get("entered", 1e18) < first + 0.9 * SHORT]
    return [f"says that {late} are missing, who were there: {said['text']}"] if late else []
