"""The command `hocket` for tests: where it is, and how to run it without ever hanging."""

import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]
WATCHDOG = 50  # seconds; a test that meets it has found a hang

# Read on import: later, tests have no HOCKET_ variables, so as to be no job's ranks.
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
