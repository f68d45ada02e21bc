"""Shared by chaos and its campaign: the places of this machine, the start and the output of a job's
processes, and what a run leaves behind.
"""

import ctypes.util
import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import chaos_hosts

MPIRUN = shutil.which("mpirun.openmpi")


@functools.cache
def count_gpus():
    """Asks a separate process, because ranks that are forked from here must find no driver at
    work.
    """
    found = subprocess.run(
        [sys.executable, "-c", "import cupy; print(cupy.cuda.runtime.getDeviceCount())"],
        capture_output=True, text=True, check=False)
    return int(found.stdout) if found.returncode == 0 else 0


def missing_places(wanted, gpus):
    """Returns the places that this machine lacks. The place "gpus" needs so many of them."""
    missing = set()
    if ctypes.util.find_library("ucp") is None:  # not loaded: it looks at the network at once
        missing |= {"pretended", "namespaces", "newcomers on hosts"}
    if chaos_hosts.why_no_namespaces():
        missing.add("namespaces")
    if MPIRUN is None:
        missing.add("mpi")
    if "gpus" in (wanted or []) and count_gpus() < gpus:
        missing.add("gpus")
    return missing


def start_mpi(size, options, program, argument, folder, **how):
    """Starts an MPI's launcher, whose output goes to the file of rank 0."""
    with open(f"{folder}/out0", "wb") as out:
        return subprocess.Popen(
            [MPIRUN, "-n", str(size), "--allow-run-as-root", "--oversubscribe", "--mca", "plm",
             "isolated", *options, sys.executable, program, argument],
            stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            env={**os.environ, "TMPDIR": f"{folder}/tmp"}, **how)


def redirect(folder, rank, silence):
    """Directs a new rank's output to its file, and its temporary files to the job's folder."""
    with open(f"{folder}/out{rank}", "ab") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    os.environ["TMPDIR"] = os.environ["XDG_RUNTIME_DIR"] = f"{folder}/tmp"
    os.environ["HOCKET_SILENCE"] = str(silence)


def take_outputs(folder):
    """Returns the last words of each rank, and removes the job's folder."""
    outputs = "".join(
        f"--- rank {path.name[3:]}\n{path.read_text(errors='replace')[-3000:]}"
        for path in sorted(Path(folder).glob("out*")) if path.stat().st_size)
    shutil.rmtree(folder, ignore_errors=True)
    return outputs


def leftovers():
    """Returns all that must be the same before and after: named shared memory, names of sockets,
    and the number of open descriptors.
    """
    shared = sorted(name for name in os.listdir("/dev/shm") if "hocket" in name)
    with open("/proc/net/unix") as file:
        sockets = [line for line in file if f"hocket-chaos-{os.getpid()}" in line]
    return {"shared memory": shared, "sockets": sockets,
            "descriptors": len(os.listdir("/proc/self/fd"))}
