"""`hocket run --trace` and `hocket trace`: the calls of ranks, and the ranks that they waited
for.
"""

import json
import subprocess

import pytest
from processes import run_job

from hocket._command import find_command

PROGRAM = """
import sys, time
import numpy as np
import hocket

comm = hocket.init()
x = np.ones(1000)
for step in range(20):
    if comm.rank == 2:
        time.sleep(0.02)
    comm.all_reduce(x)
half = comm.split(color=comm.rank % 2)
half.broadcast_object({"a": 1})
if comm.rank == 0:
    comm.send(np.arange(3), 1, tag=4)
elif comm.rank == 1:
    comm.recv(np.empty(3, int), tag=4)
comm.all_gather_async(np.ones(2)).wait()
"""

KILLED = """
import os, signal
import numpy as np
import hocket

comm = hocket.init()
comm.barrier()
if comm.rank == 1:
    while sum("all_reduce" in each.call for each in comm.last_calls()) < 2:
        pass
    os.kill(os.getpid(), signal.SIGKILL)
try:
    comm.all_reduce(np.ones(3))
except hocket.PeerDied:
    pass
"""


def shown(folder, *arguments):
    return subprocess.run(
        [find_command(), "trace", str(folder), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=50,
    )


def traced_job(tmp_path, n, program):
    folder = tmp_path / "trace"
    script = tmp_path / "program.py"
    script.write_text(program)
    job = run_job(n, script, before=["--trace", str(folder)])
    return job, folder


def test_who_is_late_is_named(tmp_path):
    job, folder = traced_job(tmp_path, 3, PROGRAM)
    assert job.returncode == 0, job.stdout
    assert sorted(file.name for file in folder.iterdir()) == [f"rank-{r}.trace" for r in range(3)]
    output = shown(folder)
    assert output.returncode == 0, output.stderr
    assert "3 ranks on 1 host" in output.stdout and "1 message" in output.stdout
    line = next(line for line in output.stdout.splitlines() if line.startswith("all_reduce"))
    assert "world" in line and "shm" in line and "7.8 KiB" in line and " 20 " in line
    assert "rank 2 (" in line  # who came last most often
    assert "Not ended well" not in output.stdout


def test_calls_for_perfetto(tmp_path):
    job, folder = traced_job(tmp_path, 3, PROGRAM)
    assert job.returncode == 0, job.stdout
    chrome = tmp_path / "all.json"
    assert shown(folder, "--chrome", chrome).returncode == 0
    events = json.loads(chrome.read_text())["traceEvents"]
    named = {e["pid"] for e in events if e["name"] == "process_name"}
    assert named == {0, 1, 2}
    calls = [e for e in events if e["ph"] == "X" and e["name"].startswith("all_reduce")]
    assert len(calls) == 60
    for number in range(1, 21):
        same = [e for e in calls if e["args"]["number"] == number]
        assert len(same) == 3
        # All on one clock: no rank leaves before all are there.
        assert max(e["ts"] for e in same) <= min(e["ts"] + e["dur"] for e in same)
    messages = [e for e in events if e["ph"] == "b"]
    assert [(e["name"], e["pid"], e["args"]["peer"]) for e in messages] == [
        ("send 24 B", 0, 1),
        ("recv 24 B", 1, 0),
    ]
    assert len([e for e in events if e["ph"] == "e"]) == 2


def test_a_rank_that_was_killed_has_left_its_calls(tmp_path):
    job, folder = traced_job(tmp_path, 3, KILLED)
    assert job.returncode != 0
    output = shown(folder).stdout
    assert "3 ranks" in output
    # The others got an error, or were ended by the launcher before they could.
    line = next(line for line in output.splitlines() if "all_reduce #2 on world: " in line)
    assert line.endswith("; rank 1 never called it")
    assert "got an error" in line or "still in it" in line


@pytest.mark.parametrize("contents", [None, b"", b"rubbish" * 1000])
def test_what_is_no_trace(tmp_path, contents):
    if contents is not None:
        (tmp_path / "rank-0.trace").write_bytes(contents)
    output = shown(tmp_path)
    assert output.returncode == 1
    assert ("no rank-N.trace" if contents is None else "rank-0.trace is") in output.stderr


def test_a_folder_that_cannot_be_written_is_an_error_of_the_job(tmp_path):
    (tmp_path / "trace").write_text("a file")
    job, _ = traced_job(tmp_path, 2, PROGRAM)
    assert job.returncode != 0
    assert "HOCKET_TRACE: cannot write" in job.stdout


@pytest.mark.parametrize("lines", [-1, 0, "many"])
def test_how_many_lines_is_one_or_more(tmp_path, lines):
    done = shown(tmp_path, "--lines", str(lines))
    assert done.returncode == 2 and "--lines: " in done.stderr, done.stderr
