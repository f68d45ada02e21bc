"""all_reduce over TCP between two hosts, beside Open MPI: hocket's and MPI's turns alternate.

The hosts are two network namespaces of this machine, joined by a pair of virtual interfaces. Each
is kept to half of the processors. Needs root, iproute2, UCX and Debian's Open MPI: ``python
bench/two_hosts.py [--ranks 2] [--sizes 8,65536] [--turns 15]``. While one library is measured the
other's ranks sleep. A turn is the mean of the middle half of some calls, each after a barrier, as
measured on rank 0. The table has the medians of the turns, and the middle half of the ratios of
neighbouring turns. The build folder's bin/ has to be in PATH. On a busy machine run it under ``nice
-n -20``.
"""

import argparse
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ADDRESSES = ("10.79.0.1", "10.79.0.2")
HERE = Path(__file__).resolve()
# Calls of a turn, of arrays up to so many bytes.
CALLS = ((8192, 300), (1 << 18, 100), (1 << 22, 15), (1 << 40, 3))


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def remove_hosts(names):
    for name in names:
        subprocess.run(["ip", "netns", "delete", name], check=False)


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def left_over():
    """Namespaces of runs that were killed and could not take them along."""
    there = subprocess.check_output(["ip", "netns", "list"], text=True)
    found = re.findall(r"^(hb(\d+)[ab])\b", there, re.MULTILINE)
    return [name for name, pid in found if not is_alive(int(pid))]


HOSTS = [f"hb{os.getpid()}{end}" for end in "ab"]


def make_hosts(names):
    remove_hosts(left_over())
    links = [f"hb{end}{os.getpid() % 100000}" for end in "xy"]
    for name in names:
        ip("netns", "add", name)
    ip("link", "add", links[0], "netns", names[0], "type", "veth",
       "peer", "name", links[1], "netns", names[1])
    for name, link, address in zip(names, links, ADDRESSES, strict=True):
        ip("-n", name, "link", "set", "lo", "up")
        ip("-n", name, "addr", "add", f"{address}/24", "dev", link)
        ip("-n", name, "link", "set", link, "up")
    # The kernel takes up to a second or two to call them running, and UCX looks at that.
    for name, link in zip(names, links, strict=True):
        while "state UP" not in subprocess.check_output(["ip", "-n", name, "link", "show", link],
                                                        text=True):
            time.sleep(0.05)


def processors_of(host):
    """Returns half of the processors that this process may use, in taskset's form."""
    mine = sorted(os.sched_getaffinity(0))
    half = max(1, len(mine) // 2)
    share = mine[:half] if host == 0 else mine[half:2 * half] or mine
    return ",".join(map(str, share))


class Library:
    """The ranks of one library, which wait for lines in their pipes."""

    def __init__(self, name, folder, ranks):
        self.folder, self.name, self.ranks = folder, name, ranks
        for rank in range(ranks):
            os.mkfifo(folder / f"{name}.{rank}")
        os.mkfifo(folder / f"{name}.answers")
        self.processes, self.pipes = [], []

    def connect(self):
        self.pipes = [open(self.folder / f"{self.name}.{r}", "w") for r in range(self.ranks)]
        self.answers = open(self.folder / f"{self.name}.answers")

    def measure(self, size, calls):
        """Microseconds of one of `calls`."""
        for pipe in self.pipes:
            print(size, calls, file=pipe, flush=True)
        return float(self.answers.readline())

    def close(self, at_once):
        """Ranks end when their pipes do; `at_once`: whatever they are at."""
        for pipe in self.pipes:
            pipe.close()
        for process in self.processes:
            if at_once:
                process.terminate()
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()


def found(program):
    path = shutil.which(program)
    if path is None:
        sys.exit(f"{program} is not in PATH: add the build folder's bin/")
    return path


def start_hocket(folder, hosts, ranks):
    library = Library("hocket", folder, 2 * ranks)
    command = found("hocket")
    subprocess.run([command, "key", folder / "key"], check=True, stdout=subprocess.DEVNULL)
    for host, name in enumerate(hosts):
        library.processes.append(subprocess.Popen(
            ["ip", "netns", "exec", name, "taskset", "-c", processors_of(host), command, "run",
             "-n", str(ranks), "--nnodes", "2", "--node-rank", str(host), "--bind", "none",
             "--rendezvous", f"{ADDRESSES[0]}:29480", "--key", folder / "key",
             "--", found("two_hosts_rank"), folder]))
    return library


def start_mpi(folder, hosts, ranks):
    library = Library("mpi", folder, 2 * ranks)
    program = folder / "ranks"
    subprocess.run(["mpicxx.openmpi", "-O2", "-std=c++20", "-DOMPI_SKIP_MPICXX",
                    HERE.with_name("two_hosts_mpi.cc"), "-o", program], check=True)
    # Gives mpirun its way to the "hosts": by namespace.
    agent = folder / "agent"
    agent.write_text(
        "#!/bin/sh\nhost=$1; shift\n"
        f"case $host in {ADDRESSES[0]}) name={hosts[0]} cpus={processors_of(0)};;"
        f" *) name={hosts[1]} cpus={processors_of(1)};; esac\n"
        'exec ip netns exec $name taskset -c $cpus sh -c "$*"\n')
    agent.chmod(0o755)
    crowded = ranks > len(processors_of(0).split(","))
    library.processes.append(subprocess.Popen(
        ["ip", "netns", "exec", hosts[0], "taskset", "-c", processors_of(0),
         "mpirun.openmpi", "--allow-run-as-root", "--bind-to", "none", "-np", str(2 * ranks),
         "--host", ",".join(f"{address}:{ranks}" for address in ADDRESSES),
         "--mca", "plm_rsh_agent", str(agent), "--mca", "orte_keep_fqdn_hostnames", "1",
         "--mca", "pml", "ob1", "--mca", "btl", "tcp,self",
         "--mca", "btl_tcp_if_include", "10.79.0.0/24", "--mca", "oob_tcp_if_include",
         "10.79.0.0/24", "--mca", "mpi_yield_when_idle", str(int(crowded)),
         program, folder], stdin=subprocess.DEVNULL))
    return library


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--ranks", type=int, default=1, help="of a host")
    parse.add_argument("--sizes", default="8,65536,1048576,67108864")
    parse.add_argument("--turns", type=int, default=15)
    options = parse.parse_args()
    # As an exception, so that what was made goes away.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        libraries = []
        done = False
        try:
            make_hosts(HOSTS)
            for start in (start_hocket, start_mpi):
                libraries.append(start(folder, HOSTS, options.ranks))
            for library in libraries:
                library.connect()
            for size in map(int, options.sizes.split(",")):
                calls = next(calls for most, calls in CALLS if size <= most)
                turns = [[l.measure(size, calls) for l in libraries] for _ in range(options.turns)]
                ratios = sorted(a / b for a, b in turns)
                quarter = len(ratios) // 4
                middles = [statistics.median(t[i] for t in turns) for i in range(2)]
                print(f"{size:9} B  hocket {middles[0]:10.1f} us  Open MPI {middles[1]:10.1f} us  "
                      f"ratio {statistics.median(ratios):.2f} "
                      f"({ratios[quarter]:.2f} to {ratios[-1 - quarter]:.2f})", flush=True)
            done = True
        finally:
            for library in libraries:
                library.close(at_once=not done)
            remove_hosts(HOSTS)


if __name__ == "__main__":
    main()
