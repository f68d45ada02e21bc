"""The campaign's judge, and a few of its jobs; tools/faults/chaos.py campaign goes on for as long as one
likes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import hocket_command
import pytest
from gpu_ranks import FAKE
from processes import PACKAGE, with_package

TOOLS = Path(__file__).parents[3] / "tools" / "faults"
SUPPORT = Path(__file__).parents[1] / "support"
sys.path.insert(0, str(TOOLS))
import campaign_plan as plans
import campaign_tables
import chaos_stacks

PLACES = ["threads", "shm", "shm", "algorithm", "pretended", "pretended", "namespaces"]


@pytest.fixture(autouse=True)
def deadlocks_end(monkeypatch):
    """One of the harms is a deadlock."""
    monkeypatch.delenv("HOCKET_DEADLOCK_AFTER", raising=False)


def run(*arguments, places=PLACES, **more):
    return subprocess.run(
        [sys.executable, str(TOOLS / "chaos.py"), "campaign", *arguments,
         *[word for place in places for word in ("--place", place)]],
        env={**with_package(PATH=f"{Path(hocket_command.find()).parent}:{os.environ['PATH']}"), **more},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=58, check=False)


@pytest.mark.parametrize("place, seed", [("threads", 5), ("shm", 7), ("pretended", 36)])
def test_every_harm_ends_as_it_must(place, seed, tmp_path):
    done = run("--seed", str(seed), "--job", "0", "--log", str(tmp_path / "log"), places=[place])
    if "this machine has none of those places" in done.stdout:
        pytest.skip(done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stdout
    lines = list(campaign_tables.read([tmp_path / "log"]))
    assert len(lines) == 60 and not any(line["wrong"] for line in lines)
    assert {line["place"] for line in lines} == {place}


@pytest.mark.parametrize("place", ["newcomers", "newcomers on hosts"])
def test_newcomers_take_the_places_of_the_dead(place, tmp_path):
    """Twelve times; three times another rank dies meanwhile, and newcomers do, too."""
    done = run("--seed", "2", "--job", "0", "--log", str(tmp_path / "log"), places=[place])
    if "this machine has none of those places" in done.stdout:
        pytest.skip(done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stdout
    lines = list(campaign_tables.read([tmp_path / "log"]))
    assert len(lines) == 20 and not any(line["wrong"] for line in lines)
    assert sum(is_deadly(line) for line in lines) == 12


def is_deadly(line):
    return plans.HARMS[line["harm"]].dies >= 0


@pytest.mark.skipif(not FAKE.exists(), reason="this build has no fake driver")
def test_every_harm_ends_as_it_must_on_a_gpu_that_ranks_share(tmp_path):
    """It is none. Its driver allocates and frees as real ones do, when no stream waits."""
    done = run("--seed", "8", "--job", "0", "--log", str(tmp_path / "log"), places=["gpus"],
               PYTHONPATH=f"{SUPPORT / 'stand_ins' / 'gpu_cupy'}:{SUPPORT}:{PACKAGE}",
               LD_LIBRARY_PATH=str(FAKE), FAKE_CUDA_DEVICES="1", FAKE_CUDA_STILL="1",
               HOCKET_NCCL_LIBRARY="none")
    assert done.returncode == 0, done.stdout
    lines = list(campaign_tables.read([tmp_path / "log"]))
    assert len(lines) == 60 and not any(line["wrong"] for line in lines)
    assert {line["place"] for line in lines} == {"gpus"}


def round_of(harm, victims=(1,)):
    return plans.Round(0, harm, (0, 1, 2), victims, "duplicate", (), (), (), 0.0)


def said(kind, **more):
    return {"kind": kind, "then": kind, "text": "", "culprit": 1, "signal": 0, "missing": [],
            "calls": [], "entered": 10.0, **more}


def test_the_judge_takes_what_must_come():
    assert not plans.judge(round_of("kill"), 0, said("PeerDied", signal=9), {})
    assert not plans.judge(round_of("other root"), 0, said("Mismatch", calls=[1, 2]), {})
    assert not plans.judge(round_of("slow rank"), 0, {"kind": "right", "then": "right"}, {})
    late = said("DeadlineExceeded", missing=[1])
    assert not plans.judge(round_of("stop"), 0, late, {0: late, 2: said("DeadlineExceeded")})
    refused = said("InvalidArgument", text=plans.REASON, then="right")
    assert not plans.judge(round_of("refuse()"), 0, refused, {})
    for took, text in ((0.1, "rank 1 of 3 was killed"), (6.1, "rank 1 of 3 had not come")):
        failed = said("RendezvousError", joined_for=took, text=text)
        assert not plans.judge(round_of("killed in init"), 0, failed, {})
    # A rank that returns early closes its communicators, and then leaves. Other ranks may hear of
    # either first.
    for kind, text in (("PeerDied", plans.LEFT), ("Aborted", plans.CLOSED)):
        assert not plans.judge(round_of("early return"), 0, said(kind, text=text), {})
    # A thread's exception ends all calls. A rank that hears of it in an earlier call leaves, so
    # others miss it in the next call.
    told = said("Aborted", text=f"rank 1 called abort(): {plans.OF_A_THREAD}; every call ends here")
    assert not plans.judge(round_of("exception in a thread"), 2, told, {})
    missed = said("PeerDied", text=plans.LEFT, culprit=2)
    assert not plans.judge(round_of("exception in a thread"), 0, missed, {2: told})


@pytest.mark.parametrize("harm, end", [
    ("kill", said("Aborted")),  # another kind
    ("kill", said("PeerDied", culprit=2)),  # another's fault
    ("kill", said("PeerDied", signal=11)),  # another signal
    ("kill", said("PeerDied", then="right")),  # forgotten by the next call
    ("early return", said("Aborted", text=plans.LEFT)),  # for no reason of this kind
    ("exit without a word", said("Aborted", text=plans.CLOSED)),  # by who closes nothing
    ("exception in a thread", said("PeerDied", text=plans.LEFT, culprit=2)),  # it had not heard
    ("slow rank", said("DeadlineExceeded")),
    ("other root", said("Mismatch", calls=[0, 2])),  # between ranks that agree
    ("abort()", said("Aborted")),  # without the reason
    ("refuse()", said("InvalidArgument", text=plans.REASON)),  # unusable afterwards
    ("stop", said("DeadlineExceeded", missing=[])),
    ("stop", said("DeadlineExceeded", missing=[1, 2])),  # one of them was there
    ("none", said("!WrongResult")),
    ("slow operator", said("DeadlineExceeded")),
    ("operator beyond the deadline", said("right")),
    ("suspension", said("DeadlineExceeded")),
    ("killed in init", said("RendezvousError", joined_for=0.1, text="rank 2 of 3 was killed")),
    ("killed in init", said("RendezvousError", joined_for=6.1, text="rank 1 of 3 was killed")),
])
def test_the_judge_finds_what_must_not_come(harm, end):
    others = {0: end, 2: said("DeadlineExceeded", entered=10.01)}
    assert plans.judge(round_of(harm), 0, end, others)


LEFT_OUT = ([], "RendezvousError")


@pytest.mark.parametrize("rebuilt, is_right", [
    ({0: ([[0, 1]], ""), 1: ([[0, 1]], ""), 2: LEFT_OUT}, True),
    ({rank: ([[0, 1, 2]], "") for rank in range(3)}, True),  # before anybody noticed
    ({0: ([[0, 1], [0]], ""), 1: ([[0, 1]], "RendezvousError"), 2: LEFT_OUT}, True),  # one after the other
    ({0: LEFT_OUT, 1: LEFT_OUT, 2: LEFT_OUT}, False),  # nobody
    ({0: ([[0]], ""), 1: ([[1, 2]], ""), 2: ([[1, 2]], "")}, False),  # two parts
    ({0: ([[0]], ""), 1: LEFT_OUT, 2: LEFT_OUT}, False),  # the smaller part
    ({0: ([[0, 1]], ""), 1: LEFT_OUT, 2: LEFT_OUT}, False),  # not all of the part
    ({0: ([[0, 1]], ""), 2: LEFT_OUT}, False),
])
def test_the_judge_wants_one_part_which_is_the_greater(rebuilt, is_right):
    assert bool(plans.judge_parts(round_of("messages cut"), rebuilt)) != is_right


@pytest.mark.parametrize("harm, place", [
    *((harm, "pretended") for harm in plans.CARRIERS),
    ("slow operator", "threads"), ("operator beyond the deadline", "shm"), ("suspension", "pretended"),
    ("killed in init", "shm"), ("killed in init", "pretended"),
    # A rank that holds its host's lane is stopped. Other ranks of its host were named as missing once.
    ("stop", "namespaces"),
])
def test_a_harm_alone_ends_as_it_must(harm, place, tmp_path):
    done = run("--seed", "850469", "--minutes", "0.08", "--harm", harm, "--log", str(tmp_path / "log"),
               places=[place])
    if "this machine has none of those places" in done.stdout:
        pytest.skip(done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stdout
    lines = list(campaign_tables.read([tmp_path / "log"]))
    assert lines and {line["harm"] for line in lines} == {harm}


def test_a_harm_comes_only_to_places_that_know_it():
    for harm, place in (("killed in init", "threads"), ("suspension", "threads"), ("circle", "pretended"),
                        ("kill", "mpi"), ("other root", "mpi"), ("messages cut", "shm")):
        assert not plans.may_come(harm, place)
        assert any(plans.may_come(harm, other) for other in plans.PLACES)


def test_a_plan_is_the_same_for_all_and_leaves_the_dead_out():
    for number in range(50):
        job = plans.Job.draw(7, number, ["shm", "pretended"], 0, True)
        rounds = list(job.plan())
        assert rounds == list(job.plan())
        dead = set()
        for round_ in rounds:
            assert not dead & set(round_.members) and round_.survivors
            assert set(round_.victims) <= set(round_.members)
            if plans.HARMS[round_.harm].dies >= 0:
                dead |= set(round_.victims)


def test_the_tables_are_made_of_the_log(tmp_path):
    page = tmp_path / "page.md"
    names = ("summary", "injected", "came", "otherwise")
    page.write_text("\n".join(f"<!-- campaign: {n} -->\n<!-- end -->" for n in names))
    line = ('{"seed": 1, "job": 2, "round": 3, "place": "shm", "ranks": 3, "harm": "kill", '
            '"came": "%s", "took": [0.002, 0.004], "wrong": %s, "at": 0, "head": "abc"}\n')
    (tmp_path / "log").write_text(
        line % ("PeerDied", "[]") + line % ("Aborted", '["rank 0 ended with Aborted"]'))
    campaign_tables.main([str(tmp_path / "log"), "--page", str(page)])
    text = page.read_text()
    assert "2 faults in 1 jobs; of the faults 1 had something wrong" in text
    assert "| kill | PeerDied |  | 1 | 1 | 4 ms | 4 ms | 4 ms |" in text
    assert "| kill | shm | 1 | 1, 2 | rank N ended with Aborted |" in text


# A gdb that hangs, with a child that keeps its output open; that fails; that prints bytes that are no text;
# that cannot be started.
@pytest.mark.parametrize(("gdb", "expected"), [
    ("echo 'Thread 1'; sleep 300 & sleep 300", r"Thread 1\n\(gdb was not through within 0.5 s\)"),
    ("echo 'ptrace: Operation not permitted.'; exit 1", r"not permitted.\n\(gdb ended with status 1"),
    (r"printf '#0 \377 at 7\n'", "#0 \ufffd at 7\n$"),
    (None, r"\(no stacks: gdb does not start: "),
])
def test_a_gdb_that_fails_ends_nothing(gdb, expected, tmp_path, monkeypatch):
    fake = tmp_path / "gdb"
    fake.write_text("#!/bin/sh\n" + gdb if gdb else "#!/no/such/shell\n")
    fake.chmod(0o755)
    others = f":{os.environ['PATH']}" if gdb else ""
    monkeypatch.setenv("PATH", f"{tmp_path}{others}")
    shown = chaos_stacks.stacks_of(os.getpid(), patience=0.5 if "sleep" in str(gdb) else 20)
    assert re.search(expected, shown), shown
