"""StopRequest: all ranks learn of a signal at the same call."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from processes import run_job

import hocket
from hocket._command import find_command


def test_all_ranks_stop_at_one_call_though_one_alone_got_the_signal(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import os, signal
import hocket
comm = hocket.init()
with hocket.StopRequest(comm) as stop:
    for step in range(1000):
        if comm.rank == 1 and step == 7:
            os.kill(os.getpid(), signal.SIGTERM)
            assert stop.noted and stop.signal == 0
        if stop.agreed():
            break
assert stop.agreed() and stop.noted == (comm.rank == 1)
print(step, signal.Signals(stop.signal).name)
""")
    done = run_job(3, program)
    assert sorted(done.stdout.splitlines()) == [f"[{rank}] 7 SIGTERM" for rank in range(3)], done.stdout


@pytest.mark.parametrize("options", [["--grace", "60"]])
def test_the_launcher_passes_the_signal_on_and_waits_as_long_as_grace_says(tmp_path, options):
    """Saving takes longer than the five seconds that ranks have otherwise."""
    program = tmp_path / "program.py"
    program.write_text("""
import time
import hocket
comm = hocket.init()
with hocket.StopRequest(comm) as stop:
    print("ready", flush=True)
    while not stop.agreed():
        time.sleep(0.01)
    time.sleep(6.5)
print("saved", flush=True)
""")
    command = [find_command(), "run", "-n", "2", *options, "--", sys.executable, str(program)]
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    seen = [job.stdout.readline() for _ in range(2)]
    assert sorted(seen) == ["[0] ready\n", "[1] ready\n"]
    time.sleep(0.2)
    job.send_signal(signal.SIGTERM)
    out, error = job.communicate(timeout=50)
    assert sorted(out.splitlines()) == ["[0] saved", "[1] saved"], error
    assert job.returncode == 128 + signal.SIGTERM


def test_handlers_are_restored_and_arguments_are_checked():
    comm = hocket.init()
    before = signal.getsignal(signal.SIGUSR1)
    with hocket.StopRequest(comm, signals=[signal.SIGUSR1, signal.SIGUSR2]) as stop:
        assert not stop.agreed() and not stop.noted
        os.kill(os.getpid(), signal.SIGUSR2)
        assert stop.agreed() and stop.signal == signal.SIGUSR2
    assert signal.getsignal(signal.SIGUSR1) is before
    stop.close()
    with pytest.raises(hocket.InvalidArgument, match="comm is None, expected a Communicator"):
        hocket.StopRequest(None)
    with pytest.raises(hocket.InvalidArgument, match=r"cannot handle signals \[10, 9\]"):
        hocket.StopRequest(comm, signals=[signal.SIGUSR1.value, signal.SIGKILL.value])
    assert signal.getsignal(signal.SIGUSR1) is before
    caught = []

    def elsewhere():
        with pytest.raises(hocket.InvalidArgument, match="make it in the main thread") as error:
            hocket.StopRequest(comm)
        caught.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert len(caught) == 1
