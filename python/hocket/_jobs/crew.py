"""Processes of this host that stay alive, and get one task after another.

`hocket.Cluster` and the pytest plugin run their ranks in them. Each ends with the process that
started it, however that ends.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from socket import socketpair
from typing import Any, Literal, NamedTuple, Optional

from . import crew_guard
from .crew_channel import QueuingChannel

# Variables that make a process a rank of some other job.
_OTHER_JOBS = (
    "HOCKET_RANK", "HOCKET_SIZE", "HOCKET_STORE", "HOCKET_KEY", "HOCKET_KEY_FILE", "HOCKET_JOIN",
)  # fmt: skip

# This variable holds a member's mark, behind the marks of the members that started it.
_MARKS = "_HOCKET_CREW_MARKS"


class Event(NamedTuple):
    """Something that a member has done."""

    kind: Literal["message", "output", "ended"]
    member: int
    #: A message, printed text, or an exit code.
    content: Any


#: Replaces an exit code: the member lost its connection to us, went on running, and was killed.
CUT_OFF = 1000
_CUT_OFF_SECONDS = 3.0


def how_it_ended(returncode: int) -> str:
    """Describe the exit code in words that follow a name."""
    if returncode == CUT_OFF:
        return "replaced its program (exec), or closed descriptors that are not its own; it was killed"
    if returncode >= 0:
        return f"exited with code {returncode}"
    try:
        return f"was killed by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"was killed by signal {-returncode}"


def signal_of(returncode: int) -> int:
    """The signal that ended a process; 0 for none."""
    return max(0, -returncode)


def fresh_address() -> str:
    """A new address, at which the ranks of one job meet."""
    return f"unix:hocket-crew-{os.getpid()}-{os.urandom(8).hex()}"


class Guard:
    """A process that ends the members' processes if this one dies without `end`. A resource."""

    def __init__(self) -> None:
        #: A word in the environment of all processes that are to be ended.
        self.mark = os.urandom(8).hex()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", crew_guard.__file__, str(os.getpid()), self.mark],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # signals to our group must not end it
        )

    def end(self) -> None:
        """End it. Whoever calls this has ended the members."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()


class Member:
    """One process. A resource: `end` ends it, and what it has started."""

    def __init__(self, index: int, door: str, mark: str) -> None:
        self.index = index
        self._mark = os.urandom(8).hex()
        ours, theirs = socketpair()
        package = str(Path(__file__).parents[2])
        paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {k: v for k, v in os.environ.items() if k not in _OTHER_JOBS}
        with theirs:
            program = "import sys; from hocket._jobs.crew_member import main; main(*map(int, sys.argv[1:]))"
            command = [sys.executable, "-c", program]
            # The kernel ends the process when the thread that started it ends. Only the main thread
            # is sure to live on.
            by_main_thread = threading.current_thread() is threading.main_thread()
            parent = os.getpid() if by_main_thread else 0
            self.process = subprocess.Popen(
                [*command, str(theirs.fileno()), str(parent)],
                env={
                    **environment,
                    "PYTHONPATH": os.pathsep.join(paths),
                    "HOCKET_DOOR": door,
                    _MARKS: f"{os.environ.get(_MARKS, '')} {mark} {self._mark}",
                },
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is passed on, not sent twice
            )
        self.channel = QueuingChannel(ours)
        assert self.process.stdout is not None
        self.output = self.process.stdout
        os.set_blocking(self.output.fileno(), False)
        #: False once the member has closed its output.
        self.prints = True
        # Modules that only this process can import must be found by it, too.
        self.send("paths", list(sys.path))

    @property
    def pid(self) -> int:
        """Its number."""
        return self.process.pid

    @property
    def is_alive(self) -> bool:
        """True if the process runs, or is stopped by a signal."""
        return self._look(os.WNOHANG) is None

    def await_end(self) -> int:
        """Wait for the end; return the exit code as subprocess has it, or CUT_OFF. The channel is
        closed.

        The system still knows the process until `end`, so that the other members can find out, too.
        """
        until = time.monotonic() + _CUT_OFF_SECONDS
        while (returncode := self._look(os.WNOHANG)) is None:
            if time.monotonic() > until:
                self.kill()
                self._look(0)
                return CUT_OFF
            time.sleep(0.001)
        return returncode

    def _look(self, flags: int) -> Optional[int]:
        if self.process.returncode is not None:
            return self.process.returncode
        found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | flags)
        if found is None:
            return None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    def send(self, *message: Any) -> None:
        """Send plain values. Never waits: `Crew.events` sends what a socket does not take at once.

        A message to a member that has ended is dropped.
        """
        with contextlib.suppress(OSError):
            self.channel.send(pickle.dumps(message))

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal."""
        if self.process.returncode is None:  # the number is its own until `end`
            os.kill(self.pid, number)

    def read_output(self) -> str:
        """Text that the member has printed since the last look."""
        parts = []
        with contextlib.suppress(OSError):
            while part := os.read(self.output.fileno(), 1 << 16):
                parts.append(part)
            self.prints = False
        return b"".join(parts).decode(errors="replace")

    def end(self) -> None:
        """Kill the process now, and close its channels."""
        self.kill()
        self.process.wait()
        crew_guard.end_marked(self._mark)
        self.channel.close()
        self.output.close()


class Crew:
    """Members, numbered from 0. A resource: `close` ends them. For one thread at a time.

    A process that is forked later leaves them alone.
    """

    def __init__(self) -> None:
        self._members: dict[int, Member] = {}
        # The door of its jobs. This process may be a rank of another job, which has a door of its own.
        self._door = fresh_address()
        self._owner = os.getpid()
        self._guard: Optional[Guard] = None

    @property
    def is_ours(self) -> bool:
        """True if this process has started them."""
        return os.getpid() == self._owner

    def __getitem__(self, index: int) -> Member:
        return self._members[index]

    def __len__(self) -> int:
        return len(self._members)

    def complete(self, n: int) -> list[int]:
        """Start those of the first `n` that are missing or have ended. Returns their numbers."""
        missing = [i for i in range(n) if i not in self._members or not self._members[i].is_alive]
        for index in missing:
            self.end(index)
            self._members[index] = self._started(index)
        return missing

    def _started(self, index: int) -> Member:
        if self._guard is None:
            self._guard = Guard()
        return Member(index, self._door, self._guard.mark)

    def renew(self, index: int) -> None:
        """Start another process in place of one that has ended."""
        self.end(index)
        self._members[index] = self._started(index)

    def end(self, index: int) -> None:
        """End one, now."""
        member = self._members.pop(index, None)
        if member is not None:
            member.end()

    def renumber(self, numbers: Iterable[int]) -> None:
        """Give each member, in order, another number."""
        members = [self._members[index] for index in sorted(self._members)]
        for member, number in zip(members, numbers):
            member.index = number
        self._members = {member.index: member for member in members}

    def kill(self) -> None:
        """Send SIGKILL to all members, from any thread. A thread that waits for them sees their
        end.
        """
        for member in list(self._members.values()):
            member.kill()

    def close(self) -> None:
        """End all members."""
        if not self.is_ours:
            return
        members = list(self._members.values())
        self._members.clear()
        for member in members:
            member.kill()
        for member in members:
            member.end()
        if self._guard is not None:
            self._guard.end()
            self._guard = None

    def events(self, indices: Iterable[int], timeout: float) -> list[Event]:
        """Wait for the first events of members. Empty if time ran out.

        A member's output comes before its message, and before its end.
        """
        members = [self._members[index] for index in indices]
        ready: set[int] = set()
        with selectors.PollSelector() as selector:
            for member in members:
                wanted = selectors.EVENT_WRITE if member.channel.has_unsent else 0
                selector.register(member.channel, selectors.EVENT_READ | wanted, member.index)
                if member.prints:
                    selector.register(member.output, selectors.EVENT_READ, member.index)
            for key, events in selector.select(max(0.0, timeout)):
                if events & selectors.EVENT_WRITE:
                    with contextlib.suppress(OSError):
                        self._members[key.data].channel.flush()
                if events & selectors.EVENT_READ:
                    ready.add(key.data)
        found: list[Event] = []
        for member in members:
            # A process that the member forked may keep its channel open after the member has ended.
            has_ended = not member.is_alive
            if has_ended or member.index in ready:
                found.extend(self._events_of(member, has_ended))
        return found

    def _events_of(self, member: Member, ended: bool) -> list[Event]:
        messages: list[Event] = []
        try:
            while (message := member.channel.receive()) is not None:
                messages.append(Event("message", member.index, pickle.loads(message)))
        except (EOFError, OSError):
            ended = True
        # A member whose connection is closed has ended, or ends at once.
        ends = [Event("ended", member.index, member.await_end())] if ended else []
        text = member.read_output()
        output = [Event("output", member.index, text)] if text else []
        return output + messages + ends


class Labels:
    """Shows the members' output, with the member's number in front of each line."""

    def __init__(self, show: Callable[[str], Any]) -> None:
        self._show = show
        self._half_lines: dict[int, str] = {}

    def print(self, index: int, text: str) -> None:
        """Show the lines that are whole."""
        lines = (self._half_lines.pop(index, "") + text).split("\n")
        if lines[-1]:
            self._half_lines[index] = lines[-1]
        for line in lines[:-1]:
            self._show(f"[{index}] {line}\n")

    def end(self) -> None:
        """Show the rest."""
        for index, line in sorted(self._half_lines.items()):
            self._show(f"[{index}] {line}\n")
        self._half_lines.clear()


def is_stopped(pid: int) -> bool:
    """True if a signal has stopped a process."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[:1] == ["T"]


def processor_time(pid: int, without: Iterable[int] = ()) -> Optional[float]:
    """Processor time in seconds of a process and of those it has started, except for some threads.

    None if one of them is running now, or waits for a processor.
    """
    tick = os.sysconf("SC_CLK_TCK")
    used = 0.0
    left = [pid]
    apart = set(without)
    while left:
        number = left.pop()
        try:
            for task in os.listdir(f"/proc/{number}/task"):
                if int(task) in apart:
                    continue
                place = Path(f"/proc/{number}/task/{task}")
                fields = (place / "stat").read_text().rpartition(")")[2].split()
                if fields[0] in "RD":
                    return None
                used += (int(fields[11]) + int(fields[12])) / tick
                left.extend(int(child) for child in (place / "children").read_text().split())
        except (OSError, IndexError, ValueError):
            continue
    return used


class Clock:
    """Measures how long something has stayed unchanged. A value."""

    def __init__(self) -> None:
        self._seen: Any = None
        self._since = time.monotonic()

    def unchanged(self, value: Any) -> float:
        """Seconds for which it has had this value."""
        now = time.monotonic()
        if value != self._seen:
            self._seen, self._since = value, now
        return now - self._since
