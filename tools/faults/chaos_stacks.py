"""Prints the stacks of a process that hangs, for people, by gdb, if they can be had."""

import contextlib
import os
import shutil
import signal
import subprocess

PATIENCE = 60  # seconds for gdb, which may hang itself on a process that does
MOST = 6000  # characters


def stacks_of(pid, patience=PATIENCE):
    """The stacks of all threads, or why there are none; never an exception, and never longer than
    `patience` by much."""
    if shutil.which("gdb") is None:
        return "(no stacks: there is no gdb here)"
    command = ["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt 14"]
    try:
        gdb = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True)
    except OSError as error:
        return f"(no stacks: gdb does not start: {error})"
    shown = b""
    why = ""
    try:
        shown, _ = gdb.communicate(timeout=patience)
        if gdb.returncode != 0:
            why = f"(gdb ended with status {gdb.returncode})"
    except subprocess.TimeoutExpired as late:
        shown, why = late.stdout or b"", f"(gdb was not through within {patience} s)"
        with contextlib.suppress(OSError):
            os.killpg(gdb.pid, signal.SIGKILL)
        # A gdb that the kernel holds is left to it.
        with contextlib.suppress(subprocess.TimeoutExpired):
            shown = gdb.communicate(timeout=5)[0] or shown
    return shown.decode(errors="replace")[-MOST:] + why
