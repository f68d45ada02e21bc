"""Processes that tests start: where they find the package, and how a test waits for them."""

import ctypes.util
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hocket
from hocket._command import find_command

PACKAGE = Path(hocket.__file__).parent.parent
BUILD = PACKAGE.parent
needs_ucx = pytest.mark.skipif(ctypes.util.find_library("ucp") is None,
                               reason="there is no UCX here, by which hosts meet")
HOSTS = [1, pytest.param(2, marks=needs_ucx)]  # by shared memory, and between pretended hosts


def with_package(**more):
    """The environment of a program: this process's, the path of the package, and more."""
    return {**os.environ, "PYTHONPATH": str(PACKAGE), **more}


def start(*arguments, **options):
    """Starts `python ARGUMENTS`. Its output, with standard error, comes through a pipe."""
    return subprocess.Popen([sys.executable, *map(str, arguments)],
                            **{"env": with_package(), "stdin": subprocess.DEVNULL,
                               "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT,
                               "text": True, **options})


def outputs_of(processes, timeout=50):
    """Waits for processes and returns their outputs. Kills those that have not ended in time."""
    try:
        return [process.communicate(timeout=timeout)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def run_job(n, *arguments, before=(), timeout=50, **options):
    """`hocket run -n N BEFORE -- python ARGUMENTS`; the finished process, its output as text."""
    environment = with_package(**options.pop("env", {}))
    return subprocess.run(
        [find_command(), "run", "-n", str(n), *before, "--", sys.executable, *map(str, arguments)],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
        **options,
    )


def run_on_hosts(n, hosts, *arguments, **environment):
    """`run_job` on pretended hosts. Every rank must print `right`."""
    pretended = {"HOCKET_TEST_HOSTS": str(hosts)} if hosts > 1 else {}
    env = {"HOCKET_DEADLINE": "40", **pretended, **environment}
    done = run_job(n, *arguments, env=env)
    assert done.returncode == 0 and done.stdout.count("right") == n, done.stdout


def mpirun(name, n):
    """The words before a program that `n` ranks of an MPI run. Skips the test without that MPI."""
    launcher = shutil.which(f"mpirun.{name}")
    if launcher is None:
        pytest.skip(f"mpirun.{name} is not installed")
    options = ["--allow-run-as-root", "--oversubscribe", "--mca", "plm", "isolated"]
    return [launcher, "-n", str(n), *(options if name == "openmpi" else [])]


def run_over_mpi(name, n, *arguments, timeout=55, **environment):
    """Runs `python ARGUMENTS` on `n` ranks of an MPI; returns its output if all ended well."""
    job = subprocess.run([*mpirun(name, n), sys.executable, *map(str, arguments)],
                         env=with_package(**environment), stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         timeout=timeout)
    assert job.returncode == 0, job.stdout
    return job.stdout


def free_port():
    """A port of this host that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def free_address():
    return f"127.0.0.1:{free_port()}"


def run_by_hand(n, program):
    """Runs `python -c PROGRAM RANK ADDRESS` for each rank, without a launcher; their outputs."""
    address = free_address()
    return outputs_of([start("-c", program, rank, address) for rank in range(n)])


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(condition, what, seconds=50):
    """Fails with `what` if the condition does not hold in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.005)
