"""The parent that starts members and talks to them, if they are stopped, replaced, or forked."""

import os
import pickle
import signal
import socket
import subprocess
import sys
import time

import pytest

from hocket._jobs.crew import CUT_OFF, Crew, how_it_ended, is_stopped
from hocket._jobs.crew_channel import Channel, QueuingChannel


@pytest.fixture
def crew():
    made = Crew()
    made.complete(1)
    yield made
    made.close()


def events(crew, kind, seconds=30):
    """The first one of a kind."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for event in crew.events([0], 0.1):
            if event.kind == kind:
                return event.content
    raise AssertionError(f"no {kind} has come")


def task(function, *arguments):
    return "task", 0, pickle.dumps((function, arguments))


def measure(_member, content):
    return len(content)


def replace(_member):
    os.execvp("sleep", ["sleep", "100"])


def leave_a_child(_member):
    if os.fork() == 0:
        time.sleep(20)
        os._exit(0)
    os._exit(5)


def close_output(_member):
    sys.stdout.flush()
    for descriptor in (1, 2):
        os.dup2(os.open("/dev/null", os.O_WRONLY), descriptor)
    time.sleep(1)


def print_half_a_character(_member, at_end):
    os.write(1, "é".encode()[:1])
    if at_end:
        os._exit(0)


def print_the_other_half(_member):
    os.write(1, "é".encode()[1:])


def test_a_character_may_come_in_two_pieces(crew):
    crew[0].send(*task(print_half_a_character, False))
    assert events(crew, "message")[0] == "done"
    crew[0].send(*task(print_the_other_half))
    assert events(crew, "output") == "é"
    crew[0].send(*task(print_half_a_character, True))
    assert events(crew, "output") == "\ufffd"


def test_a_stopped_member_holds_up_nobody(crew):
    crew[0].send(*task(measure, b""))
    assert events(crew, "message")[:1] == ("done",)
    crew[0].kill(signal.SIGSTOP)
    while not is_stopped(crew[0].pid):
        time.sleep(0.001)
    for _ in range(3000):
        crew[0].send("calls")
    large = os.urandom(1 << 22)
    crew[0].send(*task(measure, large))
    assert crew.events([0], 0.1) == []
    crew[0].kill(signal.SIGCONT)
    while (message := events(crew, "message"))[0] == "calls":
        pass
    assert message == ("done", 0, len(large))


def test_a_member_that_is_replaced_by_another_program_has_ended(crew):
    crew[0].send(*task(replace))
    code = events(crew, "ended")
    assert code == CUT_OFF
    assert "exec" in how_it_ended(code)


def test_a_member_whose_child_goes_on_has_ended(crew):
    crew[0].send(*task(leave_a_child))
    assert events(crew, "ended", 15) == 5


def test_waiting_for_a_member_without_output_costs_nothing(crew):
    crew[0].send(*task(close_output))
    used = time.process_time()
    looks = 0
    until = time.monotonic() + 30
    while time.monotonic() < until:
        found = crew.events([0], 0.1)
        looks += 1
        if found:
            break
    assert found[0].content[0] == "done"
    assert looks < 200, time.process_time() - used


def test_messages_come_whole_whatever_the_pieces():
    ours, theirs = socket.socketpair()
    here, there = QueuingChannel(ours), Channel(theirs.detach())
    sizes = [0, 1, 7, 8, 9, 5000, 3_000_000, 0, 2]
    for size in sizes:
        here.send(bytes([size % 251]) * size)
    assert here.has_unsent
    program = "import sys, hocket._jobs.crew_channel as c; s = c.Channel(int(sys.argv[1]))\nwhile True: s.send(s.receive())"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    number = there._socket.fileno()
    echo = subprocess.Popen([sys.executable, "-c", program, str(number)], pass_fds=[number], env=environment,
                            stderr=subprocess.DEVNULL)
    there._socket.close()
    got, until = [], time.monotonic() + 30
    while len(got) < len(sizes) and time.monotonic() < until:
        here.flush()
        message = here.receive()
        if message is not None:
            got.append(message)
    assert got == [bytes([size % 251]) * size for size in sizes]
    echo.kill()
    echo.wait()
    with pytest.raises((EOFError, OSError)):
        here.receive()
    here.close()
