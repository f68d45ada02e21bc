"""Calls that consist of other calls: errors name the call that the program has made, and no other."""

import re
import threading

import numpy as np
import pytest

import hocket
from hocket import distribution, fft, sparse

scipy_sparse = pytest.importorskip("scipy.sparse")

X = np.arange(4.0)


def matrix():
    return scipy_sparse.csr_array(np.eye(3))


def box(comm):
    return distribution.Box((comm.rank, 0), (comm.rank + 1, 4))


def transform(comm):
    return fft.FFT(comm, (2, 4), box(comm))


# The name in errors, and the call.
CALLS = {
    "all_gather_v": lambda c: c.all_gather_v(X),
    "gather_v": lambda c: c.gather_v(X),
    "reduce_scatter_v": lambda c: c.reduce_scatter_v(X, out=np.zeros(2)),
    "all_to_all_v": lambda c: c.all_to_all_v(X, [2, 2]),
    "reproducible_sum": lambda c: c.reproducible_sum(X, out=np.zeros(2)),
    "broadcast_object": lambda c: c.broadcast_object("o"),
    "gather_object": lambda c: c.gather_object("o"),
    "all_gather_object": lambda c: c.all_gather_object("o"),
    "scatter_object": lambda c: c.scatter_object(["o", "p"] if c.rank == 0 else None),
    "all_reduce_coalesced": lambda c: c.all_reduce_coalesced([X.copy(), X.copy()]),
    "broadcast_coalesced": lambda c: c.broadcast_coalesced([X.copy(), X.copy()]),
    "all_gather_coalesced": lambda c: c.all_gather_coalesced([X, X]),
    "reduce_scatter_coalesced": lambda c: c.reduce_scatter_coalesced([X, X], [X[:2].copy(), X[:2].copy()]),
    "compressed_all_reduce": lambda c: c.compressed_all_reduce(np.zeros(4, "float32")),
    "argmin": lambda c: c.argmin(X.copy()),
    "all_reduce": lambda c: c.all_reduce(X.copy(), op=hocket.Operator(np.maximum)),
    "hand_over": lambda c: hocket.hand_over(c, {"x": X}, root=0),
    "sparse.broadcast": lambda c: sparse.broadcast(c, matrix()),
    "sparse.all_gather": lambda c: sparse.all_gather(c, matrix()),
    "sparse.gather": lambda c: sparse.gather(c, matrix()),
    "sparse.scatter": lambda c: sparse.scatter(c, [matrix()] * 2 if c.rank == 0 else None, like=matrix()),
    "sparse.all_to_all": lambda c: sparse.all_to_all(c, [matrix()] * 2),
    "sparse.reduce": lambda c: sparse.reduce(c, matrix()),
    "sparse.all_reduce": lambda c: sparse.all_reduce(c, matrix()),
    "sparse.reduce_scatter": lambda c: sparse.reduce_scatter(c, [matrix()] * 2),
    "redistribute": lambda c: distribution.redistribute(c, X.reshape(1, 4), box(c), box(c)),
    "fft": lambda c: transform(c),
    "split": lambda c: c.split(0),
    "new_group": lambda c: c.new_group([0, 1]),
    "symmetric.empty": lambda c: c.symmetric.empty(4, "float64"),
}


def stays_away(comm, _):
    while comm.status is None:
        threading.Event().wait(0.005)


# The other rank's call, the error, and the words before the call's name.
ERRORS = {
    "circle": (lambda c, _: c.recv(X.copy(), 0), hocket.DeadlockError, r"rank 0 in "),
    "deadline": (stays_away, hocket.DeadlineExceeded, r"^"),
    "mismatch": (lambda c, _: c.broadcast(np.zeros(7, "int8")), hocket.Mismatch, r"rank 0 called "),
    "return": (lambda c, _: None, hocket.PeerDied, r"while it was needed in "),
    "refusal": (lambda c, _: c.refuse("no"), hocket.InvalidArgument, None),
    "last seen": (lambda c, call: call(c), None, r"rank 0 .*last seen in "),
}


def body(comm, call, error):
    try:
        if comm.rank == 0:
            call(comm)
        else:
            ERRORS[error][0](comm, call)
    except hocket.Error as caught:
        return caught
    return None


@pytest.mark.parametrize("error", [name for name in ERRORS if name != "last seen"])
@pytest.mark.parametrize("name", CALLS)
def test_an_error_names_the_call_of_the_program(monkeypatch, name, error):
    if error == "deadline":
        monkeypatch.setenv("HOCKET_DEADLINE", "0.3")
    _, kind, before = ERRORS[error]
    told = hocket.run_threads(body, 2, CALLS[name], error)[0]
    assert type(told) is kind, told
    if before is not None:
        assert re.search(before + re.escape(name) + r"[ ,:;#]", str(told)), told
    inner = {"all_gather", "all_to_all", "barrier", "broadcast", "gather"} - {name}
    text = str(told).replace("rank 1 called broadcast", "")
    assert not any(re.search(rf"\b(in|called|refused) {word}\b", text) for word in inner), told
    if error in ("deadline", "return"):
        assert told.status.operation == name.split()[0], told.status


def last_seen(comm, call):
    if comm.rank == 1:
        return body_of_call(comm, call)
    try:
        comm.recv(X.copy(), 1, deadline=0.3)
    except hocket.DeadlineExceeded as caught:
        return caught


def body_of_call(comm, call):
    try:
        call(comm)
    except hocket.Error as caught:
        return caught


@pytest.mark.parametrize("name", CALLS)
def test_others_see_the_call_of_the_program(monkeypatch, name):
    monkeypatch.setenv("HOCKET_DEADLOCK_AFTER", "0")
    told = hocket.run_threads(last_seen, 2, CALLS[name])[0]
    assert re.search(rf"rank 1 .*last seen in {re.escape(name)}[ ,;#]", str(told)), told


@pytest.mark.parametrize("name", CALLS)
def test_a_warning_names_the_call_of_the_program(monkeypatch, capfd, name):
    monkeypatch.setenv("HOCKET_WARN", "0.05")
    monkeypatch.setenv("HOCKET_DEADLINE", "0.5")
    hocket.run_threads(body, 2, CALLS[name], "deadline")
    warned = [line for line in capfd.readouterr().err.splitlines() if "warning" in line]
    assert warned and all(re.search(rf"\b{re.escape(name)}[ ,:;#]", line) for line in warned), warned
