"""The command `hocket` for tests: where it is, and how to run it without ever hanging."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys

from processes import with_package

ROOT = pathlib.Path(__file__).resolve().parents[3]
WATCHDOG = 50  # seconds; a test that meets it has found a hang

# Read on import: tests run without HOCKET_ variables, which would make them ranks of a job.
NAMED = os.environ.get("HOCKET_BIN")


def find():
    """The path of the command, from HOCKET_BIN, PATH, or the build folder."""
    named = NAMED or shutil.which("hocket")
    if named:
        return named
    built = sorted(ROOT.glob("build/*/bin/hocket"))
    if not built:
        raise RuntimeError("no command `hocket`: build it, or name it in HOCKET_BIN")
    return str(built[0])


def run(*arguments, **options):
    """Runs it to its end and returns the subprocess.CompletedProcess, output as text."""
    options.setdefault("stdin", subprocess.DEVNULL if "input" not in options else None)
    if options["stdin"] is None:
        del options["stdin"]
    return subprocess.run(
        [find(), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=WATCHDOG,
        check=False,
        **options,
    )


def start(*arguments, **options):
    """Starts it; the caller waits with a timeout of WATCHDOG. Output comes through pipes."""
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    return subprocess.Popen([find(), *map(str, arguments)], text=True, **options)


@contextlib.contextmanager
def running(program, n, *before, args=(), **environment):
    """A job of `python -c PROGRAM ARGS`, once a rank has said that it is ready."""
    process = start("run", "-n", n, *before, "--", sys.executable, "-c", program, *args,
                    env=with_package(**environment))
    try:
        assert "ready" in process.stdout.readline(), process.stderr.read()
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=WATCHDOG)
