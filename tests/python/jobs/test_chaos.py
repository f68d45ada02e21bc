"""Random jobs that come to random harm, for a few seconds; tools/faults/chaos.py goes on for as long as
one likes."""

import os
import subprocess
import sys
from pathlib import Path

import hocket_command
import pytest
from processes import with_package

CHAOS = Path(__file__).parents[3] / "tools" / "faults" / "chaos.py"


def run(*arguments):
    return subprocess.run(
        [sys.executable, str(CHAOS), "--slack", "20", *arguments],
        env=with_package(PATH=f"{Path(hocket_command.find()).parent}:{os.environ['PATH']}"),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=58, check=False)


# Jobs in which something was wrong: seed, job, places.
@pytest.mark.parametrize("seed, job, places", [
    # Half of the ranks end in a separate group, and make no other call than the rest of them.
    (4711, 3, ["pretended", "namespaces"]),
])
def test_jobs_that_went_wrong_once(seed, job, places):
    done = run("--seed", str(seed), "--job", str(job),
               *[word for place in places for word in ("--place", place)])
    if "this machine has none of those places" in done.stdout:
        pytest.skip(done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("places", [["shm", "algorithm", "threads"], ["pretended", "namespaces"]])
def test_whatever_happens_ranks_end_in_time_with_right_results_or_errors(places):
    done = run("--seed", "4711", "--minutes", "0.15",
               *[word for place in places for word in ("--place", place)])
    if "this machine has none of those places" in done.stdout:
        pytest.skip(done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stdout
    assert " 0 failed" in done.stdout and not done.stdout.splitlines()[-1].startswith("0 jobs")
