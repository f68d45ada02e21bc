"""Two jobs of one user at one address: they are kept separate, or the second is refused."""

import subprocess
import sys
import time

import pytest
from processes import free_address, with_package

# Each rank says whose ranks it met, or why it could not. A job that has met stays until both ranks of
# the other one have tried. Otherwise a late rank could find the address free, and wait in vain.
SAYS = """
import os, pathlib, sys, time, hocket
def say(*words): os.write(1, (" ".join(map(str, words)) + "\\n").encode())
def meet(job, rank, /, **given):
    tried = pathlib.Path(os.environ["TRIED"])
    try:
        comm = hocket.init(timeout=20, **given)
    except hocket.RendezvousError as error:
        say("refused:", error)
        (tried / f"{job}{rank}").touch()
        return
    say("met:", "".join(sorted(comm.all_gather_object(job))))
    (tried / f"{job}{rank}").touch()
    until = time.monotonic() + 25
    while len(list(tried.iterdir())) < int(os.environ["RANKS"]) and time.monotonic() < until:
        time.sleep(0.01)
    comm.barrier()
"""
RANK = SAYS + """
job, rank, address = sys.argv[1:4]
meet(job, rank, rank=int(rank), size=2, address=address)
"""

# The parent of a job's ranks, as a shell or a launcher is.
PARENT = f"""
import subprocess, sys, time
job, first, address, pause = sys.argv[1:5]
ranks = []
for rank in ([0, 1] if first == "0" else [1, 0]):
    ranks.append(subprocess.Popen([sys.executable, "-c", {RANK!r}, job, str(rank), address]))
    time.sleep(float(pause))
for rank in ranks:
    rank.wait()
"""


def run_both(tried, address, first, pause, delay, **names):
    jobs = []
    for job in ("a", "b"):
        more = {"HOCKET_JOB": names[job]} if names else {}
        jobs.append(subprocess.Popen(
            [sys.executable, "-c", PARENT, job, first, address, str(pause)],
            env=with_package(TRIED=str(tried), RANKS="4", **more), stdout=subprocess.PIPE, text=True,
        ))
        time.sleep(delay)
    return [job.communicate(timeout=55)[0].splitlines() for job in jobs]


@pytest.mark.parametrize("address", ["unix", "loopback"])
@pytest.mark.parametrize("delay", [0.0, 0.15])
@pytest.mark.parametrize("first", ["0", "1"])
def test_ranks_of_two_parents_do_not_mix(tmp_path, address, delay, first):
    where = free_address() if address == "loopback" else f"unix:hocket-two-{time.monotonic_ns()}"
    for lines in run_both(tmp_path, where, first, 0.05, delay):
        met = [line for line in lines if line.startswith("met:")]
        assert len(lines) == 2 and met in ([], ["met: aa"] * 2, ["met: bb"] * 2), lines
        for line in lines:
            if line.startswith("refused:"):
                # With neither job complete, a rank may be refused before the other job's rank 0 ends.
                words = ("another job", "another process claims it", "rank 1 of 2 had not come")
                assert any(each in line for each in words), line


# Starts one job's ranks with the variables of torchrun. `between`: each rank has a shell of its own.
SHELLS = {
    "one shell": 'for r in {order}; do RANK=$r LOCAL_RANK=$r {rank} & sleep {pause}; done; wait',
    "a shell for each rank":
        'for r in {order}; do (RANK=$r LOCAL_RANK=$r {rank}; true) & sleep {pause}; done; wait',
}

# Calls init as the variables say, or with a key over TCP where an address is given.
MEETS = SAYS + """
job, address = sys.argv[1:3]
meet(job, os.environ["RANK"], **({} if address == "-" else {
    "rank": int(os.environ["RANK"]), "size": 2, "address": address, "key": b"k" * 32}))
"""


def start_from_shell(tmp_path, job, address, port, how, order, pause, ranks=2):
    tried = tmp_path / "tried"
    tried.mkdir(exist_ok=True)
    program = tmp_path / "meets.py"
    program.write_text(MEETS)
    rank = f"'{sys.executable}' '{program}' {job} {address}"
    more = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port), "TRIED": str(tried), "RANKS": str(ranks)}
    return subprocess.Popen(
        ["bash", "-c", SHELLS[how].format(order=order, rank=rank, pause=pause)],
        env=with_package(**more), stdout=subprocess.PIPE, text=True,
    )


@pytest.mark.parametrize("address", ["variables", "tcp"])
@pytest.mark.parametrize("order", ["0 1", "1 0"])
@pytest.mark.parametrize("pauses", [(0.5, 0.0), (0.0, 0.5), (0.0, 0.0)])
def test_jobs_with_one_port_do_not_mix(tmp_path, address, order, pauses):
    """The number of a port does not name a job, whichever way its ranks meet there."""
    where = free_address()
    port = where.rpartition(":")[2]
    jobs = [
        start_from_shell(tmp_path, job, "-" if address == "variables" else where, port, "one shell",
                         order, pause, ranks=4)
        for job, pause in zip("ab", pauses)
    ]
    said = [job.communicate(timeout=55)[0].splitlines() for job in jobs]
    for job, lines in zip("ab", said):
        met = [line for line in lines if line.startswith("met:")]
        assert len(lines) == 2 and met in ([], [f"met: {job}{job}"] * 2), said
        for line in lines:
            assert line.startswith("met:") or "another job of yours" in line, said


@pytest.mark.parametrize("address", ["variables", "tcp"])
@pytest.mark.parametrize("how", SHELLS)
@pytest.mark.parametrize("order", ["0 1", "1 0"])
def test_ranks_of_one_job_meet_whatever_started_them(tmp_path, address, how, order):
    where = free_address()
    port = where.rpartition(":")[2]
    job = start_from_shell(
        tmp_path, "a", "-" if address == "variables" else where, port, how, order, 0.1)
    assert job.communicate(timeout=55)[0].splitlines() == ["met: aa"] * 2


def test_names_tell_jobs_of_one_parent_apart(tmp_path):
    where = f"unix:hocket-two-{time.monotonic_ns()}"
    for lines in run_both(tmp_path, where, "0", 0.0, 0.0, a="first", b="second"):
        met = [line for line in lines if line.startswith("met:")]
        assert met in ([], ["met: aa"] * 2, ["met: bb"] * 2), lines
