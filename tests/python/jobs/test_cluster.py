"""Ranks that are kept between calls and cells, and the notebook that shows them."""

import asyncio
import gc
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from helpers import ROOT
from processes import PACKAGE, is_running, with_package

import hocket

NOTEBOOK = ROOT / "examples" / "cluster.ipynb"


@pytest.fixture(scope="module")
def shared():
    with hocket.Cluster(3) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared):
    """Whole, whatever the test before has done."""
    shared.restart()
    return shared


def total(comm, offset):
    return float(comm.all_reduce(np.array(comm.rank + offset))), os.getpid()


def test_run(cluster):
    results = cluster.run(total, 0.5)
    assert [result[0] for result in results] == [4.5] * 3
    assert [result[1] for result in results] == cluster.pids and len(set(cluster.pids)) == 3
    assert cluster.run(total, 1)[0][1] == cluster.pids[0]
    assert len(cluster) == cluster.size == 3


def test_what_cannot_be_called_is_refused(cluster):
    with pytest.raises(hocket.InvalidArgument, match="fn is 5, which cannot be called"):
        cluster.run(5)
    assert cluster.run(lambda comm: comm.rank) == [0, 1, 2]


def test_closures_and_large_results(cluster):
    pytest.importorskip("cloudpickle")
    offset = 7
    found = cluster.run(lambda comm: np.arange(300_000) + comm.rank + offset)
    for rank in range(3):
        assert np.array_equal(found[rank], np.arange(300_000) + rank + offset)


def test_cells_keep_names_and_label_what_is_printed(cluster, capsys):
    cluster.run_cell("x = np.full(2, comm.rank + 1.0)\nprint('of', comm.rank)")
    cluster.run_cell("comm.all_reduce(x)\nx[0] + comm.rank")
    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines[:3]) == [f"[{rank}] of {rank}" for rank in range(3)]
    assert sorted(lines[3:]) == [f"[{rank}] np.float64({6.0 + rank})" for rank in range(3)]
    assert [x.tolist() for x in cluster["x"]] == [[6, 6]] * 3
    cluster["y"] = {"k": [1, 2]}
    cluster.run_cell("y['k'][1] + comm.rank;")
    cluster.run_cell("print(y['k'][1] + comm.rank, end='')", ranks=[2])
    assert capsys.readouterr().out == "[2] 4\n"
    with pytest.raises(KeyError, match="there is no 'z' on rank"):
        cluster["z"]


def fails(comm):
    if comm.rank == 1:
        raise KeyError("the second rank")
    comm.barrier()


def test_the_first_failure_is_raised_and_the_cluster_goes_on(cluster):
    with pytest.raises(KeyError, match="the second rank") as caught:
        cluster.run(fails)
    assert "rank 1 failed" in str(caught.value.__cause__) and "in fails" in str(caught.value.__cause__)
    pids = cluster.pids
    assert cluster.run(total, 0)[2] == (3.0, pids[2])


def refuses(comm):
    if comm.rank:
        comm.barrier(nonsense=1)


def test_a_refusal_that_some_ranks_have_not_met_does_not_reach_into_the_next_task(cluster):
    cluster.run(total, 0)
    with pytest.raises(TypeError, match="nonsense"):
        cluster.run(refuses)
    assert cluster.run(total, 0)[2][0] == 3.0
    with pytest.raises(hocket.cluster.CellError, match="nonsense"):
        cluster.run_cell("comm.barrier(nonsense=1)", ranks=[1])
    assert cluster.run(total, 0)[2][0] == 3.0


def test_threads_take_turns(cluster):
    def run(i):
        results[i] = [result[0] for result in cluster.run(total, i)]

    results = {}
    threads = [threading.Thread(target=run, args=(i,)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {i: [3.0 + 3 * i] * 3 for i in range(12)}


def test_a_forked_child_leaves_the_ranks_alone():
    program = """
import os, sys
import hocket
cluster = hocket.Cluster(1)
for closes in (False, True):
    if os.fork() == 0:
        try:
            cluster.run(int)
        except hocket.InvalidArgument as error:
            print("forked" in str(error), flush=True)
        if closes:
            cluster.close()
        sys.exit(0)
    os.wait()
    print(cluster.run_cell("comm.size"))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100
    )
    assert done.stdout == "True\n[0] 1\nNone\n" * 2, done.stderr


def test_close_ends_what_another_thread_waits_for():
    def run():
        with pytest.raises(hocket.Aborted, match="was closed while its ranks were at work"):
            cluster.run_cell("comm.recv(np.ones(1), 1 - comm.rank)")
        seen.append("killed")

    seen = []
    cluster = hocket.Cluster(2)
    thread = threading.Thread(target=run)
    thread.start()
    while cluster._whose_turn is None:
        time.sleep(0.01)
    cluster.close()
    thread.join()
    assert seen == ["killed"] and cluster.is_closed


def sends_and_fails(comm):
    if comm.rank == 1:
        comm.send(np.full(3, 111.0), 0)
    raise ValueError(comm.rank)


def receives(comm):
    x = np.zeros(3)
    if comm.rank == 1:
        comm.send(np.full(3, 222.0), 0)
    if comm.rank == 0:
        comm.recv(x, 1)
    return x.tolist()


def test_a_message_of_a_task_that_failed_is_not_received_by_the_next(cluster):
    cluster.run(total, 0)
    with pytest.raises(ValueError):
        cluster.run(sends_and_fails)
    assert cluster.run(receives)[0] == [222.0] * 3


def fails_with_a_call_in_a_circle(comm):
    circle = []
    circle += [circle, comm.recv_async(np.zeros(3), (comm.rank + 1) % comm.size)]
    raise ValueError(comm.rank)


def total_without_garbage(comm):
    gc.collect()
    return total(comm, 0)[0]


def test_a_call_of_a_task_that_failed_is_not_given_up_in_the_next(cluster):
    cluster.run(total, 0)
    with pytest.raises(ValueError):
        cluster.run(fails_with_a_call_in_a_circle)
    assert cluster.run(total_without_garbage) == [3.0] * 3


def test_a_cell_that_fails(cluster):
    cluster.run_cell("kept = 5")
    with pytest.raises(hocket.cluster.CellError, match="rank 2: ZeroDivisionError") as caught:
        cluster.run_cell("if comm.rank == 2:\n    1 / 0\ncomm.barrier()")
    (text,) = caught.value._render_traceback_()
    assert 'File "<cell 2 on rank 2>", line 2' in re.sub(r"<cell \d+", "<cell 2", text)
    assert "    1 / 0" in text and "cluster/_member" not in text
    assert re.search(r"^rank 0: Aborted", text, re.M)
    assert cluster["kept"] == [5] * 3


def test_a_typing_error_ends_no_communicator(cluster):
    cluster.run_cell("own = comm.duplicate()")
    with pytest.raises(hocket.cluster.CellError, match="NameError"):
        cluster.run_cell("no_such_name")
    cluster.run_cell("own.barrier()")
    # Also while ranks have calls of a cell before under way.
    cluster.run_cell("w = own.barrier_async()", ranks=[0])
    with pytest.raises(hocket.cluster.CellError, match="nonsense"):
        cluster.run_cell("comm.barrier(nonsense=1)")
    cluster.run_cell("w.wait() if comm.rank == 0 else own.barrier()")


def test_ctrl_c_stops_the_cell_and_leaves_the_ranks(cluster):
    pids = cluster.pids
    cluster.run_cell("kept = comm.rank * 2")
    for cell in ("comm.recv(np.empty(1), source=(comm.rank + 1) % 3)",
                 "import time\ntime.sleep(100)",
                 "while True: pass"):
        timer = threading.Timer(0.4, os.kill, [os.getpid(), signal.SIGINT])
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            cluster.run_cell(cell)
        timer.join()
        assert cluster.pids == pids and cluster["kept"] == [0, 2, 4]
    assert cluster.run(total, 0)[0] == (3.0, pids[0])


def test_a_rank_that_is_killed_is_named_and_replaced(cluster):
    pids = cluster.pids
    cluster.run_cell("kept = comm.rank * 2")
    threading.Timer(0.3, os.kill, [pids[1], signal.SIGKILL]).start()
    with pytest.raises(hocket.PeerDied, match=r"rank 1 \(pid \d+\) was killed by SIGKILL") as caught:
        cluster.run_cell("comm.recv(np.empty(1), source=1, tag=3)", ranks=[0, 1, 2])
    assert (caught.value.rank, caught.value.pid, caught.value.signal) == (1, pids[1], 9)
    with pytest.raises(hocket.PeerDied, match=r"cluster.restart\(\) replaces it"):
        cluster.run(total, 0)
    assert "without rank 1" in repr(cluster)
    cluster.restart()
    assert cluster.pids[0] == pids[0] and cluster.pids[1] != pids[1]
    assert cluster.run(total, 0)[1] == (3.0, cluster.pids[1])
    cluster.run_cell("kept", ranks=[0, 2])
    with pytest.raises(KeyError, match="on rank 1"):
        cluster["kept"]


def test_a_rank_that_is_killed_between_cells(cluster):
    os.kill(cluster.pids[2], signal.SIGKILL)
    time.sleep(0.2)
    with pytest.raises(hocket.PeerDied, match="rank 2"):
        cluster.run(total, 0)
    cluster.restart(ranks=[0])
    assert cluster.run(total, 0)[0][0] == 3.0


def stops_itself(comm, ranks, call):
    if comm.rank in ranks:
        os.kill(os.getpid(), signal.SIGSTOP)
    getattr(comm, call, str)()


@pytest.mark.parametrize(
    ("ranks", "call"), [([1], "barrier"), ([1], "no call"), ([0, 1], "barrier"), ([0, 1], "no call")]
)
def test_a_rank_that_is_stopped_is_named_within_the_deadline(monkeypatch, ranks, call):
    monkeypatch.setenv("HOCKET_DEADLINE", "1")
    with hocket.Cluster(2) as cluster:
        pids = cluster.pids
        with pytest.raises(hocket.DeadlineExceeded) as caught:
            cluster.run(stops_itself, ranks, call)
        assert list(caught.value.missing) == ranks
        for rank in ranks:
            assert re.search(rf"rank {rank} \(pid {pids[rank]}\) .*stopped", str(caught.value))
        with pytest.raises(RuntimeError, match=r"cluster.restart\(\) replaces it"):
            cluster.run(total, 0)
        cluster.restart()
        assert cluster.run(total, 0)[0][0] == 1.0
        assert [old != new for old, new in zip(pids, cluster.pids)] == [r in ranks for r in range(2)]


@pytest.mark.parametrize("n", [0, -1, 2.0, "2"])
def test_clusters_of_a_number_that_is_none(n):
    with pytest.raises((hocket.InvalidArgument, TypeError)):
        hocket.Cluster(n)


def test_closed():
    cluster = hocket.Cluster(1)
    (pid,) = cluster.pids
    cluster.close()
    cluster.close()
    assert not os.path.exists(f"/proc/{pid}") and repr(cluster).endswith("closed>")
    with pytest.raises(hocket.InvalidArgument, match="closed"):
        cluster.run(total, 0)


ENDS = """
import os, signal, hocket, threading, time
cluster = hocket.Cluster(2)
print(*cluster.pids, flush=True)
{prepare}
cluster.run_cell({cell!r})
{end}
"""


@pytest.mark.parametrize(
    ("cell", "end"),
    [
        ("1", "os.kill(os.getpid(), signal.SIGKILL)"),
        ("import threading\nthreading.Event().wait(50)", ""),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", ""),
        ("1", ""),
    ],
)
def test_no_orphans(cell, end):
    waits = cell != "1"
    prepare = "threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGKILL]).start()" if waits else ""
    program = ENDS.format(prepare=prepare, cell=cell, end=end)
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, timeout=50,
                          env=with_package())
    pids = [int(pid) for pid in done.stdout.splitlines()[0].split()]
    assert len(pids) == 2
    until = time.monotonic() + 30
    while left := [pid for pid in pids if is_running(pid)]:
        assert time.monotonic() < until, left
        time.sleep(0.05)


def cells_of(notebook):
    """Yields the text of each code cell, and its output."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            shown = [output.get("text") or output.get("data", {}).get("text/plain") or
                     output.get("traceback") for output in cell["outputs"]]
            yield "".join(cell["source"]), re.sub(r"pid \d+", "pid N", "".join("".join(s) for s in shown))


def test_the_notebook_in_a_kernel(tmp_path):
    pytest.importorskip("nbconvert", reason="nbconvert is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--output-dir", tmp_path,
         NOTEBOOK],
        env=with_package(),
        capture_output=True, text=True, timeout=55)
    assert done.returncode == 0, done.stderr
    shown, found = (dict(cells_of(json.loads(path.read_text())))
                    for path in (NOTEBOOK, tmp_path / NOTEBOOK.name))
    for source, output in shown.items():
        assert sorted(found[source].splitlines()) == sorted(output.splitlines()), source


def calls_once_more(comm, what):
    """All but rank 1 wait for it in a call of theirs."""
    x = np.full(2, comm.rank + 1.0)
    comm.all_reduce(x)
    if comm.rank == 1:
        return
    if what == "all_reduce":
        comm.all_reduce(x)
    elif what == "Work":
        comm.all_reduce_async(x).wait()
    elif what == "behind another":
        first = comm.all_reduce_async(x)
        comm.barrier()
        first.wait()
    elif what == "large send":
        comm.send(np.ones(10_000_000), 1)
    elif what == "recv":
        comm.recv(x, 1)
    elif what == "probe":
        comm.probe(1)
    elif what == "recv of any":
        if comm.rank == 2:
            return
        comm.recv(x)
    elif what == "object":
        comm.broadcast_object(None, root=1)
    elif what == "group":
        comm.split(0)
    elif what == "await":

        async def body():
            await comm.all_reduce_async(x)

        asyncio.run(body())


@pytest.mark.parametrize(
    "what",
    ["all_reduce", "Work", "behind another", "large send", "recv", "probe", "recv of any", "object",
     "group", "await"],
)
def test_a_rank_that_returns_early_does_not_hold_the_others(cluster, what):
    with pytest.raises(hocket.PeerDied, match=r"rank [12] \(pid \d+\) has returned from what") as info:
        cluster.run(calls_once_more, what)
    assert info.value.rank == 1 or (info.value.rank == 2 and what == "recv of any")
    assert cluster.run(total, 0.5)[2][0] == 4.5  # and goes on


def test_a_cell_of_some_ranks_does_not_wait_for_the_others(cluster):
    with pytest.raises(hocket.cluster.CellError, match="rank 0 .* has returned from what it was called"):
        cluster.run_cell("comm.barrier()", ranks=[1, 2])
    cluster.run_cell("comm.barrier()")


def waits_for_less_than_it_seems(comm):
    """A call that rank 1 has begun completes, also after rank 1 has returned."""
    x = np.full(100_000, comm.rank + 1.0)
    if comm.rank == 1:
        kept.append((comm.send_async(x, 0), comm.all_reduce_async(x.copy())))
        return 0.0
    time.sleep(0.5)  # rank 1 has returned long since
    if comm.rank == 0:
        comm.recv(received := np.zeros_like(x), 1)
        return received[0] + comm.all_reduce(x)[0]
    return comm.all_reduce(x)[0]


kept = []


def test_what_a_rank_has_begun_before_it_returns_comes(cluster):
    for _ in range(3):
        assert cluster.run(waits_for_less_than_it_seems) == [8, 0, 6]
    # A later round may end a wait of an earlier one.
    cluster.run_cell("w = comm.barrier_async(); import time; time.sleep(0.4)", ranks=[0])
    cluster.run_cell("import time; time.sleep(0.4)", ranks=[1])
    cluster.run_cell("if comm.rank: comm.barrier()\nelse: w.wait()")


def test_a_thread_that_a_rank_has_left_behind_may_yet_come(cluster):
    cluster.run_cell(
        "import threading, time\n"
        "def late(): time.sleep(1); comm.barrier()\n"
        "if comm.rank == 1: threading.Thread(target=late).start()\n"
        "else: comm.barrier()"
    )


def rebuilds(comm):
    if comm.rank == 1:
        return 0
    try:
        comm.barrier()
    except hocket.PeerDied:
        comm = comm.rebuild()
    return comm.size


def test_those_who_are_left_may_go_on_without_one_that_has_returned(cluster):
    assert cluster.run(rebuilds) == [2, 0, 2]


class Speechless(Exception):
    """Says nothing of itself."""

    def __str__(self):
        raise RuntimeError("no text")


class Unprintable(Exception):
    """The same, and cannot be pickled."""

    def __repr__(self):
        raise RuntimeError("no text")

    __str__ = __repr__

    def __reduce__(self):
        raise RuntimeError("no pickle")


class Unreadable(Exception):
    """Can be pickled and not read."""

    def __init__(self, a, b):
        super().__init__()


def raises(comm, kind):
    if comm.rank == 1:
        raise kind(*([1, 2] if kind is Unreadable else []))


@pytest.mark.parametrize("kind", [Speechless, Unprintable, Unreadable])
def test_exceptions_that_cannot_say_what_they_are_end_no_rank(cluster, kind):
    cluster["kept"] = 7
    before = cluster.pids
    with pytest.raises((kind, RuntimeError)) as caught:
        cluster.run(raises, kind)
    assert type(caught.value) is kind or kind.__name__ in str(caught.value)
    assert cluster["kept"] == [7, 7, 7] and cluster.pids == before
    with pytest.raises((kind, RuntimeError)):
        hocket.spawn(raises, 2, kind)


CHILD = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"


def start_child(comm, how):
    """A process that has left its parent's session, and perhaps its parent."""
    command = [sys.executable, "-c", CHILD]
    if how == "forked twice":
        command = [sys.executable, "-c", "import os, sys\nif os.fork(): os._exit(0)\nos.setsid()\n"
                   "os.execv(sys.executable, [sys.executable, '-c', sys.argv[1]])", CHILD]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as child:
        pid = int(child.stdout.readline())
        child.stdout.close()
        child.wait = lambda *_, **__: 0  # goes on
    return pid


@pytest.mark.parametrize("end", ["close", "restart"])
@pytest.mark.parametrize("how", ["session", "forked twice"])
def test_what_ranks_have_started_ends_with_them(how, end):
    with hocket.Cluster(2) as cluster:
        children = cluster.run(start_child, how)
        assert all(map(is_running, children))
        if end == "restart":
            cluster.restart(ranks=[0, 1])
            assert not any(map(is_running, children))
    until = time.monotonic() + 20
    while any(map(is_running, children)):
        assert time.monotonic() < until
        time.sleep(0.05)


# A program that is killed, and its ranks' children, which have left their sessions.
KILLED = """
import os, signal, sys, threading, time
import hocket
sys.path.insert(0, {folder!r})
from test_cluster import start_child

def stay(comm):
    time.sleep(60)

def stop(comm):
    os.kill(os.getpid(), signal.SIGSTOP)

if __name__ == "__main__":
    cluster = hocket.Cluster(2)
    print(*cluster.pids, *cluster.run(start_child, {how!r}), flush=True)
    threading.Timer(0.5, os.kill, [os.getpid(), {number}]).start()
    {{"nothing": lambda: time.sleep(60), "a task": lambda: cluster.run(stay),
      "stopped ranks": lambda: cluster.run(stop)}}[{meanwhile!r}]()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("meanwhile", ["nothing", "a task", "stopped ranks"])
@pytest.mark.parametrize("how", ["session", "forked twice"])
def test_what_ranks_have_started_ends_with_a_program_that_is_killed(tmp_path, how, meanwhile, number):
    program = tmp_path / "program.py"
    folder = str(Path(__file__).parent)
    program.write_text(KILLED.format(folder=folder, how=how, number=int(number), meanwhile=meanwhile))
    paths = [str(PACKAGE), str(Path(folder).parent / "support")]
    done = subprocess.run([sys.executable, program], stdout=subprocess.PIPE, text=True, timeout=50,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})
    assert done.returncode == -number
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 4
    until = time.monotonic() + 20
    while any(map(is_running, pids)):
        assert time.monotonic() < until
        time.sleep(0.05)


NOT_FOUND = """
import sys
sys.modules["cloudpickle"] = None  # as if it were not installed
import hocket

class Own:
    pass

def function(comm):
    return comm.rank

def inner():
    return lambda comm: comm.rank

with hocket.Cluster(2) as cluster:
    calls = {
        "function": lambda: cluster.run(function),
        "class": lambda: cluster.run(print, Own),
        "object": lambda: cluster.run(print, [Own()]),
        "lambda": lambda: cluster.run(inner()),
        "name": lambda: cluster.__setitem__("x", Own()),
        "spawn": lambda: hocket.spawn(function, 2),
        "spawn an object": lambda: hocket.spawn(print, 2, Own()),
    }
    for name, call in calls.items():
        try:
            call()
        except hocket.InvalidArgument as error:
            assert "cloudpickle" in str(error) and "hocket[notebooks]" in str(error), error
        else:
            raise AssertionError(name)
    cluster.run_cell("x = comm.rank")
    assert cluster["x"] == [0, 1]
"""


def test_without_cloudpickle_the_package_is_named():
    done = subprocess.run([sys.executable, "-c", NOT_FOUND], text=True, timeout=50,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=with_package())
    assert done.returncode == 0, done.stdout


# --- Other ranks ----------------------------------------------------------------------------------


def whoami(comm):
    return comm.rank, comm.size, os.getpid(), comm.newcomers


def test_resize_keeps_the_ranks_that_stay_and_their_names():
    with hocket.Cluster(2) as cluster:
        cluster.run_cell("mine = comm.rank + 0.5")
        pids = cluster.pids
        cluster.resize(5)
        found = cluster.run(whoami)
        assert [one[:2] for one in found] == [(rank, 5) for rank in range(5)] and len(cluster) == 5
        assert [one[2] for one in found] == cluster.pids and cluster.pids[:2] == pids
        assert all(one[3] == (2, 3, 4) for one in found)
        cluster.run_cell("mine = hocket.hand_over(comm, globals().get('mine'), root=0, to=comm.newcomers)")
        assert cluster["mine"] == [0.5, 1.5, 0.5, 0.5, 0.5]
        assert cluster.run(total, 0)[4][0] == 10.0
        cluster.resize(2)
        assert cluster.pids == pids and cluster["mine"] == [0.5, 1.5]
        assert [one[:2] for one in cluster.run(whoami)] == [(0, 2), (1, 2)]
        cluster.resize(1)
        cluster.resize(3)
        assert [one[0] for one in cluster.run(total, 1)] == [6.0] * 3 and cluster.pids[0] == pids[0]


@pytest.mark.parametrize("victims", [[0], [1, 2], [0, 1, 2]])
def test_restart_has_newcomers_in_the_places_of_the_dead(victims):
    with hocket.Cluster(4) as cluster:
        cluster.run_cell("mine = comm.rank")
        pids = cluster.pids
        for rank in victims:
            os.kill(pids[rank], signal.SIGKILL)
        with pytest.raises(hocket.PeerDied, match="restart"):
            for _ in range(100):
                cluster.run(total, 0)
        cluster.restart()
        found = cluster.run(whoami)
        assert [one[:2] for one in found] == [(rank, 4) for rank in range(4)]
        assert all(one[3] == tuple(victims) for one in found)
        assert [one[2] == pid for one, pid in zip(found, pids)] == [rank not in victims for rank in range(4)]
        cluster.run_cell("known = 'mine' in globals()")
        assert cluster["known"] == [rank not in victims for rank in range(4)]
        cluster.restart([3])  # also one that lives
        assert cluster.run(whoami)[0][3] == (3,) and cluster.pids[3] != pids[3]


def test_resize_replaces_what_has_died_and_begins_anew_where_it_must():
    with hocket.Cluster(3) as cluster:
        os.kill(cluster.pids[1], signal.SIGKILL)
        cluster.resize(4)
        assert cluster.run(total, 0)[3][0] == 6.0
        cluster.run_cell("comm.close()")  # this rank can take nobody in
        cluster.resize(5)
        assert cluster.run(total, 0)[4][0] == 10.0
        for pid in cluster.pids:
            os.kill(pid, signal.SIGKILL)
        cluster.resize(2)
        assert cluster.run(total, 0)[1][0] == 1.0


@pytest.mark.parametrize("n, words", [(0, "n is 0, expected at least 1"), ("2", "n is '2'"), (10**6, "n is 1000000")])
def test_wrong_sizes(shared, n, words):
    with pytest.raises(hocket.InvalidArgument, match=words):
        shared.resize(n)
    assert shared.size == 3


def test_a_closed_cluster_has_no_other_size():
    cluster = hocket.Cluster(1)
    cluster.close()
    with pytest.raises(hocket.InvalidArgument, match="closed"):
        cluster.resize(2)
