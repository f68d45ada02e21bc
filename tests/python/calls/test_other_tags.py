"""A receive with a tag that no rank sends. Its error and warning say that another message waits."""

import contextlib
import re

import numpy as np
import pytest
from helpers import threads
from processes import run_job

import hocket

WAITS = "a message with tag 5 from rank 1 waits"
RECEIVES = {
    "recv": lambda c, x: c.recv(x, 1, deadline=0.3),
    "recv from any": lambda c, x: c.recv(x, hocket.ANY_SOURCE, deadline=0.3),
    "recv_async": lambda c, x: c.recv_async(x, 1, deadline=0.3).wait(),
    "recv_object": lambda c, x: c.recv_object(1, deadline=0.3),
    "probe": lambda c, x: c.probe(1, deadline=0.3),
}


def error_of(comm, receive, send):
    comm = comm.duplicate()
    if comm.rank == 1:
        work = send(comm)
        comm.barrier()
        with contextlib.suppress(hocket.Error):  # what ends rank 0's receive ends this too
            comm.barrier()
        del work
        return None
    comm.barrier()
    with pytest.raises(hocket.DeadlineExceeded) as caught:
        receive(comm, np.zeros(3))
    return str(caught.value)


def send_under_5(comm):
    return comm.send_async(np.zeros(3), 0, tag=5)


@pytest.mark.parametrize("receive", RECEIVES)
def test_the_error_says_so(receive):
    text = threads(2, error_of, RECEIVES[receive], send_under_5)[0]
    assert f"did not finish within 0.3 s, while {WAITS}: rank 1" in text, text


def test_nothing_is_said_where_nothing_waits():
    receive = RECEIVES["recv"]
    assert "waits" not in threads(2, error_of, receive, lambda comm: None)[0]
    text = threads(2, error_of, lambda c, x: c.recv(x, 1, tag=hocket.ANY_TAG, deadline=0.3), lambda comm: None)[0]
    assert "waits" not in text


JOB = """
import os, sys
if sys.argv[1] == "2":
    os.environ["HOCKET_HOST"] = os.environ["HOCKET_RANK"] + "/"
import numpy as np, hocket
comm = hocket.init()
if comm.rank == 1:
    comm.send(np.zeros(3), 0, tag=5)
comm.barrier()
try:
    if comm.rank == 0:
        comm.recv(np.zeros(3), hocket.ANY_SOURCE, deadline=1.0)
    else:
        comm.recv(np.zeros(3), 0, tag=9)
except hocket.DeadlineExceeded as error:
    print("error:", error)
"""


@pytest.mark.parametrize("hosts", [1, 2])
def test_between_processes_and_hosts(hosts):
    job = run_job(2, "-c", JOB, hosts, env={"HOCKET_WARN": "0.3", "HOCKET_DEADLOCK_AFTER": "0"})
    assert re.search(f"error: .*while {WAITS}", job.stdout), job.stdout
    assert re.search(f"has waited .* in recv .*; {WAITS}", job.stdout), job.stdout


def test_a_deadlock_says_so():
    job = run_job(2, "-c", JOB, 1)
    for rank in 0, 1:
        assert re.search(rf"\[{rank}\] error: .*rank 0 in recv .* tag 0 \({WAITS}\), rank 1 in", job.stdout), job.stdout
