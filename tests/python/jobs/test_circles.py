"""Ranks that wait for each other where no proof is found: the final error tells the circle."""

import json

import pytest
from processes import run_job

RANK = """
import json, sys
import numpy
import hocket

comm = hocket.init(deadline=3)
array = numpy.zeros(3)
other = comm.duplicate()
left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
calls = {
    "receives": lambda: comm.recv(array, right),
    "a probe and a split": lambda: comm.split(0) if comm.rank else comm.probe(1),
    "a receive and a barrier": lambda: comm.barrier() if comm.rank else comm.recv(array, 1),
    "two communicators": lambda: (comm if comm.rank else other).recv(array, right),
}
try:
    calls[sys.argv[1]]()
except hocket.DeadlineExceeded as error:
    print(json.dumps([type(error).__name__, str(error), list(error.missing)]))
"""
CASES = ["receives", "a probe and a split", "a receive and a barrier", "two communicators"]


@pytest.mark.parametrize("case", CASES)
def test_the_final_error_tells_a_known_circle(tmp_path, case):
    program = tmp_path / "circle.py"
    program.write_text(RANK)
    done = run_job(2, program, case, env={"HOCKET_DEADLOCK_AFTER": "0", "HOCKET_WARN": "0.4"})
    told = [json.loads(line.split(" ", 1)[1]) for line in done.stdout.splitlines() if '["' in line]
    assert len(told) == 2, done.stdout + done.stderr
    circles = [text for kind, text, missing in told if "in a circle" in text and missing == [0, 1]]
    assert circles, told
    # Across communicators the rank that gives up first takes the circle with it.
    assert len(circles) == 2 or case == "two communicators", told
    assert not any("only slow" in text for text in circles), told
