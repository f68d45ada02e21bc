"""Processes of this host that stay alive, and get one task after another.

`hocket.Cluster` and the pytest plugin run their ranks in such processes. Each process ends when the
process that started it ends, for whatever reason.
"""

from __future__ import annotations

import codecs
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

# Variables that would make a new process a rank of another job.
_OTHER_JOBS = (
    "HOCKET_RANK", "HOCKET_SIZE", "HOCKET_STORE", "HOCKET_KEY", "HOCKET_KEY_FILE", "HOCKET_JOIN",
)  # fmt: skip

# The variable that holds a member's mark, behind the marks of all members that it descends from.
_MARKS = "_HOCKET_CREW_MARKS"


class Event(NamedTuple):
    """One thing that a member has done: sent a message, printed text, or ended."""

    kind: Literal["message", "output", "ended"]
    member: int
    #: The message, the printed text, or the exit code.
    content: Any


#: Stands for an exit code: the member lost its connection to this process, went on running, and was
#: killed.
CUT_OFF = 1000
_CUT_OFF_SECONDS = 3.0
#: Stands for an exit code that the system did not keep, because this program ignores SIGCHLD.
UNKNOWN = 1001


def how_it_ended(returncode: int) -> str:
    """Describe an exit code by words that can follow a name, such as "was killed by SIGKILL"."""
    if returncode == CUT_OFF:
        return "replaced its program (exec), or closed descriptors that are not its own; it was killed"
    if returncode == UNKNOWN:
        return "ended, and how is not known, as this program ignores SIGCHLD"
    if returncode >= 0:
        return f"exited with code {returncode}"
    try:
        return f"was killed by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"was killed by signal {-returncode}"


def signal_of(returncode: int) -> int:
    """Return the signal that ended a process; 0 if no signal did."""
    return max(0, -returncode)


def fresh_address() -> str:
    """Return a new address at which the ranks of one job can meet."""
    return f"unix:hocket-crew-{os.getpid()}-{os.urandom(8).hex()}"


class Guard:
    """A process that ends the members' processes if this process dies before it calls `end`. A
    resource.
    """

    def __init__(self) -> None:
        #: A random text in the environment of all processes that the guard would end.
        self.mark = os.urandom(8).hex()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", crew_guard.__file__, str(os.getpid()), self.mark],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a signal to this process's group must not end the guard
        )

    def end(self) -> None:
        """End the guard. Call it once the members have ended."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()


class Member:
    """One process. A resource: `end` ends the process, and all processes that it has started."""

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
            # certainly lives as long as this process.
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
                start_new_session=True,  # Ctrl-C is passed on by messages, not by the terminal
            )
        self.channel = QueuingChannel(ours)
        assert self.process.stdout is not None
        self.output = self.process.stdout
        os.set_blocking(self.output.fileno(), False)
        # Keeps the first bytes of a character until the rest of it comes.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        #: False once the member has closed its output.
        self.prints = True
        # Modules that only this process can import must be found by the member, too.
        self.send("paths", list(sys.path))

    @property
    def pid(self) -> int:
        """The process's pid."""
        return self.process.pid

    @property
    def is_alive(self) -> bool:
        """True if the process runs, or if a signal has stopped it."""
        return self._look(os.WNOHANG) is None

    def await_end(self) -> int:
        """Wait for the end of the process, whose channel is closed. Return the exit code as
        subprocess does, or CUT_OFF.

        The process stays a zombie until `end`, so that other members can find out how it ended.
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
        try:
            found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | flags)
        except ChildProcessError:
            return UNKNOWN
        if found is None:
            return None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    def send(self, *message: Any) -> None:
        """Send plain values. Never waits: if the socket does not take all bytes, `Crew.events`
        sends the rest.

        A message to a member that has ended is dropped.
        """
        with contextlib.suppress(OSError):
            self.channel.send(pickle.dumps(message))

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to the process."""
        if self.process.returncode is None:  # its pid cannot be reused before `end`
            with contextlib.suppress(ProcessLookupError):  # if this program ignores SIGCHLD
                os.kill(self.pid, number)

    def read_output(self, ended: bool) -> str:
        """Return the text that the member has printed since the last call.

        An incomplete last character is kept for the next call, unless the member has ended.
        """
        parts = []
        with contextlib.suppress(OSError):
            while part := os.read(self.output.fileno(), 1 << 16):
                parts.append(part)
            self.prints = False
        return self._decoder.decode(b"".join(parts), final=ended)

    def end(self) -> None:
        """Kill the process and all processes that it has started. Close the channels."""
        self.kill()
        self.process.wait()
        crew_guard.end_marked(self._mark)
        self.channel.close()
        self.output.close()


class Crew:
    """Members, numbered from 0. A resource: `close` ends them. For one thread at a time.

    In a child process that this process forks later, `close` leaves the members alone.
    """

    def __init__(self) -> None:
        self._members: dict[int, Member] = {}
        # The address at which the members' job meets. This process may itself be a rank of another
        # job, which meets elsewhere.
        self._door = fresh_address()
        self._owner = os.getpid()
        self._guard: Optional[Guard] = None

    @property
    def is_ours(self) -> bool:
        """True if this process has started the members. False in a process that was forked from it.
        """
        return os.getpid() == self._owner

    def __getitem__(self, index: int) -> Member:
        return self._members[index]

    def __len__(self) -> int:
        return len(self._members)

    def complete(self, n: int) -> list[int]:
        """Start those of the first `n` members that are missing or have ended. Return their
        numbers.
        """
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
        """Replace a member that has ended by a new process."""
        self.end(index)
        self._members[index] = self._started(index)

    def end(self, index: int) -> None:
        """Kill a member at once, and forget it."""
        member = self._members.pop(index, None)
        if member is not None:
            member.end()

    def renumber(self, numbers: Iterable[int]) -> None:
        """Give the members new numbers, in the order of their old numbers."""
        members = [self._members[index] for index in sorted(self._members)]
        for member, number in zip(members, numbers):
            member.index = number
        self._members = {member.index: member for member in members}

    def kill(self) -> None:
        """Send SIGKILL to all members. Any thread may call it. A thread that waits for the members
        sees their end.
        """
        for member in list(self._members.values()):
            member.kill()

    def close(self) -> None:
        """End all members, and the guard."""
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
        """Wait for the first events of members. Return an empty list if the timeout passes.

        In the list, a member's output precedes its messages, and its end comes last.
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
            # Another process, which the member forked, may hold the channel open. So look at the
            # member, too.
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
        # A member whose channel is closed has ended, or ends at once.
        ends = [Event("ended", member.index, member.await_end())] if ended else []
        text = member.read_output(ended)
        output = [Event("output", member.index, text)] if text else []
        return output + messages + ends


class Labels:
    """Shows the members' output line by line, each line with the member's number before it."""

    def __init__(self, show: Callable[[str], Any]) -> None:
        self._show = show
        self._half_lines: dict[int, str] = {}

    def print(self, index: int, text: str) -> None:
        """Show the complete lines. Keep a last line without newline until the rest of it comes."""
        lines = (self._half_lines.pop(index, "") + text).split("\n")
        if lines[-1]:
            self._half_lines[index] = lines[-1]
        for line in lines[:-1]:
            self._show(f"[{index}] {line}\n")

    def end(self) -> None:
        """Show the kept lines, whose newlines never came."""
        for index, line in sorted(self._half_lines.items()):
            self._show(f"[{index}] {line}\n")
        self._half_lines.clear()


def is_stopped(pid: int) -> bool:
    """Return True if a signal has stopped the process."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[:1] == ["T"]


def processor_time(pid: int, without: Iterable[int] = ()) -> Optional[float]:
    """Return the processor time, in seconds, that a process and its children have used. Threads in
    `without` are left out.

    Return None if one of the other threads runs now, or waits for a processor or a disk.
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
    """Measures how long a value has stayed the same. A value."""

    def __init__(self) -> None:
        self._seen: Any = None
        self._since = time.monotonic()

    def unchanged(self, value: Any) -> float:
        """Return the seconds for which the value has been the same."""
        now = time.monotonic()
        if value != self._seen:
            self._seen, self._since = value, now
        return now - self._since
