"""The rank to blame: rank 1 ends in some way, and rank 0, which is in a call, gets that cause."""

import re
from pathlib import Path

import pytest
from processes import needs_ucx, run_job

PROGRAM = Path(__file__).parents[1] / "support" / "blamed_ranks.py"

# For each way in which rank 1 ends, the words that rank 0 gets.
ENDS = {
    "raise": "raised RuntimeError: no fuel",
    "raise in lines": "raised RuntimeError: no fuel at all",
    "raise in a block": "raised RuntimeError: no fuel",
    "raise after close": "raised RuntimeError: no fuel",
    "raise bytes that are no text": "raised RuntimeError: no \\udcff.dat",
    "raise a word without end": "raised RuntimeError: LLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLLL",
    "exit 1 after an exception": "raised RuntimeError: no fuel",
    "interrupt": "raised KeyboardInterrupt",
    "exit 3": "ended with exit status 3",
    "exit with words": "ended with exit status 1",
    "exit 3 from a block": "ended with exit status 3",
    "_exit 4": "exited with code 4 and without leaving the job",
    "kill": "was killed by signal 9 (SIGKILL)",
}
IN_ORDER = dict.fromkeys(["exit 0", "return", "return after a group's block"], "ended in good order")
IN_ORDER["raise in a thread"] = "ended in good order, after its thread reader raised RuntimeError: no fuel"
FROM_ANY = [
    "recv", "recv with any tag", "recv_async", "wait_any", "probe", "probe_now", "recv_object", "send_recv",
    "exchange", "sleep, then recv",
]  # fmt: skip
FOR_ONE = ["recv from 1", "all_reduce", "barrier_async", "broadcast from 1"]


def told(tmp_path, end, call, third="stays", hosts="one", launcher=("--keep-going",)):
    """Returns rank 0's output, and how often its `finally` was run."""
    last = tmp_path / "last"
    last.unlink(missing_ok=True)
    done = run_job(
        3, PROGRAM, end, call, third, hosts, before=launcher, env={"LAST": str(last), "HOCKET_LOG": "error"}
    )
    own = [line.removeprefix("[0] ") for line in done.stdout.splitlines() if line.startswith("[0] ")]
    assert len(own) == 1, done.stdout
    assert last.read_text() == "finally\n", done.stdout
    return own[0]


def assert_blamed(text, end, words=""):
    words = words or {**ENDS, **IN_ORDER}[end]
    place = r"(on \S+ \([\d.:]+\) )?"  # of a rank of another host
    assert re.match(r"PeerDied of 1: rank 1 \(pid \d+\) " + place + re.escape(words), text), text
    assert ("close a world only" in text) <= (end in IN_ORDER), text


@pytest.mark.parametrize("end", ENDS)
def test_how_a_rank_ends(tmp_path, end):
    assert_blamed(told(tmp_path, end, "recv"), end)


@pytest.mark.parametrize("end", IN_ORDER)
def test_a_rank_that_ends_in_good_order_is_said_to(tmp_path, end):
    assert_blamed(told(tmp_path, end, "recv from 1"), end)


@pytest.mark.parametrize("call", FROM_ANY[1:] + FOR_ONE)
def test_in_which_call_the_other_stands(tmp_path, call):
    assert_blamed(told(tmp_path, "raise", call), "raise")


@pytest.mark.parametrize("third", ["before", "after"])
@pytest.mark.parametrize("end", ["raise", "exit 3", "kill"])
def test_another_rank_leaves_in_good_order(tmp_path, end, third):
    """A third rank leaves before rank 1 ends, or because of it."""
    assert_blamed(told(tmp_path, end, "recv", third), end)


@needs_ucx
@pytest.mark.parametrize("end", ["raise", "exit 3", "kill"])
def test_between_hosts(tmp_path, end):
    words = "is gone (its process has ended" if end == "kill" else ""  # no other rank of its host could say how
    for third in ("after", "before"):
        assert_blamed(told(tmp_path, end, "recv", third, "each"), end, words)


@needs_ucx
def test_probes_of_several_ranks_in_turn(tmp_path):
    text = told(tmp_path, "kill", "probe_now of each", hosts="each")
    assert_blamed(text, "kill", "is gone (its process has ended")


@pytest.mark.parametrize("call", FROM_ANY)
def test_the_launcher_leaves_time_for_a_last_checkpoint(tmp_path, call):
    """Without --keep-going the launcher ends the ranks a second later, by SIGTERM."""
    assert_blamed(told(tmp_path, "kill", call, launcher=()), "kill")


LATE = """
import threading, time
import hocket

comm = hocket.init()
comm.barrier()
if comm.rank == 1:
    reader = threading.Thread(target=lambda: 1 / 0, name="reader")
    reader.start()
    reader.join()
    while comm.status is None:
        time.sleep(0.01)
else:
    try:
        comm.barrier(deadline=1.5)
    except hocket.DeadlineExceeded as error:
        print(error)
"""


def test_a_late_rank_is_told_with_what_its_thread_has_raised():
    output = run_job(2, "-c", LATE).stdout
    assert "(finished), its thread reader raised ZeroDivisionError: division by zero; give a longer" in output
    assert "Exception in thread reader" in output  # Python's own text is printed, too
