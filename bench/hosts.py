"""Collectives over TCP between hosts, beside Open MPI 4 and 5, MPICH 5 and gloo, in turns.

The hosts are network namespaces of this machine behind a switch, with one rank each or more, and
share its processors in equal parts. Needs root, iproute2, UCX, and the libraries to compare with;
one that is missing is left out. ``python bench/hosts.py [--hosts 2,4,8] [--kinds all_reduce]
[--sizes 8,1M,16M] [--turns 9] [--algorithm all_reduce=ring]``; the build folder's bin/ has to be in
PATH. While one library is measured the ranks of the others sleep. A turn is some calls, one after
the other, and its time the slowest rank's. A table has the medians of the turns. A ratio is the
median of the ratios of turns side by side, and the last column has that to the quickest other
library, which is the greatest of them. On a busy machine only the ratios mean something.
"""

import argparse
import contextlib
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEERS = HERE.parent / ".peers"
KINDS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all")
UNITS = {"K": 1 << 10, "M": 1 << 20}
LONGEST = 20  # seconds that a library may take for a turn


def size_of(text):
    return int(text[:-1]) * UNITS[text[-1]] if text[-1] in UNITS else int(text)


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def address_of(host):
    return f"10.79.0.{host + 1}"


class Network:
    """Network namespaces hb<pid>-<i> with address 10.79.0.<i + 1>, behind a switch in hb<pid>-s."""

    def __init__(self, hosts):
        self.remove_left_over()
        pid = os.getpid()
        self.names = [f"hb{pid}-{host}" for host in range(hosts)]
        self.switch = f"hb{pid}-s"
        self.processors = sorted(os.sched_getaffinity(0))
        try:
            self.make(pid % 100000)
        except BaseException:
            self.close()
            raise

    def make(self, mark):
        ip("netns", "add", self.switch)
        ip("-n", self.switch, "link", "add", "switch", "type", "bridge")
        ip("-n", self.switch, "link", "set", "switch", "up")
        for host, name in enumerate(self.names):
            inner, port = f"hi{mark}x{host}", f"hp{mark}x{host}"
            ip("netns", "add", name)
            ip("link", "add", inner, "netns", name, "type", "veth",
               "peer", "name", port, "netns", self.switch)
            ip("-n", self.switch, "link", "set", port, "master", "switch", "up")
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "addr", "add", f"{address_of(host)}/24", "dev", inner)
            ip("-n", name, "link", "set", inner, "up")
            # The kernel takes up to two seconds until it reports the interface as up, which UCX
            # requires.
            while "state UP" not in subprocess.check_output(["ip", "-n", name, "link", "show", inner], text=True):
                time.sleep(0.05)

    def close(self):
        for name in [*self.names, self.switch]:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)

    @staticmethod
    def remove_left_over():
        """Deletes the namespaces of earlier runs that were killed before they could delete them."""
        there = subprocess.check_output(["ip", "netns", "list"], text=True)
        for name, pid in re.findall(r"^(hb(\d+)-\w+)\b", there, re.MULTILINE):
            if not Path(f"/proc/{pid}").exists():
                subprocess.run(["ip", "netns", "delete", name], check=False)

    def share(self, host):
        """Returns a host's part of the processors that this process may use, in taskset's form."""
        own = self.processors[host % len(self.processors)::len(self.names)]
        return ",".join(map(str, own))

    def on(self, host, *words):
        """Returns the command that runs `words` on a host, with the host's name as hostname."""
        script = f'hostname {self.names[host]}; exec "$@"'
        return ["ip", "netns", "exec", self.names[host], "unshare", "--uts", "sh", "-c", script, "-",
                "taskset", "-c", self.share(host), *map(str, words)]

    def favour(self):
        """Gives all processes of the hosts priority over other work. The scheduler divides time between
        sessions (autogroups), and some launchers make a session for their ranks. Without this, libraries
        would get different shares of the processors."""
        for name in self.names:
            for pid in subprocess.check_output(["ip", "netns", "pids", name], text=True).split():
                with contextlib.suppress(OSError):
                    Path(f"/proc/{pid}/autogroup").write_text("-20")

    def agent(self, folder):
        """Writes a script that mpirun uses in place of ssh to start commands on the hosts."""
        cases = "".join(
            f"  {address_of(host)}) exec {shlex.join(self.on(host, 'sh', '-c'))} \"$*\";;\n"
            for host in range(len(self.names)))
        agent = folder / "agent"
        agent.write_text(f"#!/bin/sh\nhost=$1; shift\ncase $host in\n{cases}esac\n")
        agent.chmod(0o755)
        return agent


class Site:
    """The data with which a library is started: network, folder, ranks, algorithm."""

    def __init__(self, network, folder, ranks, algorithm):
        self.network, self.folder, self.ranks = network, folder, ranks
        self.hosts = len(network.names)
        self.agent = network.agent(folder)
        self.is_crowded = ranks * self.hosts > len(network.processors)
        self.addresses = ",".join(f"{address_of(host)}:{ranks}" for host in range(self.hosts))
        self.algorithm = algorithm


def compiled(compiler, source, target, *libraries):
    """Compiles a program and returns its path; None if there is no compiler or it fails."""
    if shutil.which(compiler) is None:
        return None
    done = subprocess.run([compiler, "-O2", "-std=c++20", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX",
                           str(HERE / source), "-o", str(target), *libraries], capture_output=True)
    return target if done.returncode == 0 else None


def hocket(site):
    command, rank = (shutil.which(name) for name in ("hocket", "hosts_rank"))
    if command is None or rank is None:
        sys.exit("hocket and hosts_rank are not in PATH: add the build folder's bin/")
    key = site.folder / "key"
    subprocess.run([command, "key", str(key)], check=True, stdout=subprocess.DEVNULL)
    environment = {"HOCKET_ALGORITHM": site.algorithm} if site.algorithm else {}
    return [
        (site.network.on(host, command, "run", "-n", site.ranks, "--nnodes", site.hosts, "--node-rank", host,
                         "--bind", "none", "--rendezvous", f"{address_of(0)}:29480", "--key", key,
                         "--", rank, site.folder, "hocket"), environment)
        for host in range(site.hosts)
    ]


def open_mpi(site, name, release, folder):
    program = compiled(f"{folder}mpicxx" if folder else "mpicxx.openmpi", "hosts_mpi.cc", site.folder / f"{name}-ranks")
    if program is None:
        return None
    words = [f"{folder}mpirun" if folder else "mpirun.openmpi", "--allow-run-as-root", "--bind-to", "none",
             "-np", site.ranks * site.hosts, "--host", site.addresses,
             "--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "10.79.0.0/24",
             "--mca", "mpi_yield_when_idle", int(site.is_crowded)]
    if release == 4:
        words += ["--mca", "plm_rsh_agent", site.agent, "--mca", "orte_keep_fqdn_hostnames", "1",
                  "--mca", "oob_tcp_if_include", "10.79.0.0/24"]
    else:
        words += ["--prtemca", "plm_ssh_agent", site.agent, "--prtemca", "prte_keep_fqdn_hostnames", "1",
                  "--prtemca", "prte_if_include", "10.79.0.0/24"]
    return [(site.network.on(0, *words, program, site.folder, name), {})]


def mpich(site, name):
    folder = PEERS / "mpich5" / "bin"
    program = compiled(str(folder / "mpicxx"), "hosts_mpi.cc", site.folder / f"{name}-ranks")
    if program is None:
        return None
    hosts = ",".join(address_of(host) for host in range(site.hosts))
    return [(site.network.on(0, folder / "mpiexec.hydra", "-launcher", "rsh", "-launcher-exec", site.agent,
                             "-localhost", address_of(0), "-bind-to", "none", "-hosts", hosts,
                             "-ppn", site.ranks, "-n", site.ranks * site.hosts,
                             program, site.folder, name), {"UCX_TLS": "tcp,self"})]


def gloo(site, name):
    program = compiled("c++", "hosts_gloo.cc", site.folder / "gloo-ranks", "-lgloo", "-lpthread")
    if program is None:
        return None
    (site.folder / "gloo-store").mkdir()
    size = site.hosts * site.ranks
    return [(site.network.on(rank // site.ranks, program, site.folder, name, rank, size,
                             address_of(rank // site.ranks)), {}) for rank in range(size)]


LIBRARIES = {
    "hocket": hocket,
    "openmpi4": lambda site: open_mpi(site, "openmpi4", 4, ""),
    "openmpi5": lambda site: open_mpi(site, "openmpi5", 5, f"{PEERS}/openmpi5/bin/"),
    "mpich5": lambda site: mpich(site, "mpich5"),
    "gloo": lambda site: gloo(site, "gloo"),
}


class Library:
    """The ranks of one library. They wait for commands in their pipes."""

    def __init__(self, name, site):
        self.name = name
        self.log = site.folder / f"{name}.log"
        self.pipes, self.answers, self.processes = [], [], []
        commands = LIBRARIES[name](site)
        if commands is None:
            raise FileNotFoundError(f"{name} is left out: it is not installed")
        size = site.ranks * site.hosts
        own = [site.folder / f"{name}.{rank}" for rank in range(size)]
        for path in own:
            os.mkfifo(path)
            os.mkfifo(f"{path}.answers")
        with open(self.log, "w") as log:
            for words, environment in commands:
                self.processes.append(subprocess.Popen(
                    list(map(str, words)), env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                    stdout=log, stderr=log))
        # Each rank opens its file of answers for writing before it opens its commands. So this
        # process opens the answers first, too.
        self.answers = [self.opened(f"{path}.answers", os.O_RDONLY, "r") for path in own]
        self.pipes = [self.opened(path, os.O_WRONLY, "w") for path in own]

    def opened(self, path, flags, mode):
        until = time.monotonic() + LONGEST
        while True:
            with contextlib.suppress(OSError):
                fd = os.open(path, flags | os.O_NONBLOCK)
                os.set_blocking(fd, True)
                return open(fd, mode)
            if time.monotonic() > until or any(process.poll() for process in self.processes):
                sys.exit(f"{self.name} does not start:\n{self.log.read_text()}")
            time.sleep(0.02)

    def measure(self, kind, size, calls):
        """Returns the microseconds of one call on the slowest rank. A rank makes `calls` of them."""
        for pipe in self.pipes:
            print(kind, size, calls, file=pipe, flush=True)
        signal.alarm(LONGEST)
        try:
            said = [answers.readline() for answers in self.answers]
        finally:
            signal.alarm(0)
        if not all(said):
            raise TimeoutError(f"has ended:\n{self.log.read_text()}")
        return max(map(float, said))

    def close(self, patience):
        """Closes the pipes, so that the ranks end. Terminates processes left after `patience` seconds."""
        for pipe in self.pipes:
            with contextlib.suppress(OSError):
                pipe.close()
        for seconds, end in ((patience, subprocess.Popen.terminate), (5, subprocess.Popen.kill)):
            until = time.monotonic() + seconds
            while any(process.poll() is None for process in self.processes) and time.monotonic() < until:
                time.sleep(0.02)
            for process in self.processes:
                end(process)


def measured(libraries, kind, size, turns, batch):
    """Returns the times of each library in microseconds, one for each turn. A library that fails or
    takes too long is left out of all later measurements."""
    calls, times = {}, {}
    for turn in range(-1, turns):
        for library in list(libraries):
            if kind == "reduce_scatter" and library.name == "gloo":
                continue
            try:
                took = library.measure(kind, size, calls.get(library, 2))
            except TimeoutError as error:
                print(f"{library.name} in {kind} of {size} bytes: {error}", file=sys.stderr, flush=True)
                libraries.remove(library)
                library.close(patience=0)
                times.pop(library.name, None)
                continue
            if turn < 0:
                calls[library] = max(1, min(20000, int(batch * 1e6 / took)))
            else:
                times.setdefault(library.name, []).append(took)
    return times


def ratios_of(times):
    """Returns the median and the middle half of hocket's time divided by each other library's."""
    result = {}
    for name, theirs in times.items():
        if name == "hocket":
            continue
        ratios = sorted(a / b for a, b in zip(times["hocket"], theirs, strict=True))
        quarter = len(ratios) // 4
        result[name] = (statistics.median(ratios), ratios[quarter], ratios[-1 - quarter])
    return result


def show(hosts, kind, size, times):
    ratios = ratios_of(times)
    words = [f"{name} {statistics.median(each):.1f}" for name, each in times.items()]
    if ratios:
        name, (middle, low, high) = max(ratios.items(), key=lambda item: item[1][0])
        words.append(f"ratio to {name} {middle:.2f} ({low:.2f} to {high:.2f})")
    print(f"{hosts} hosts {kind:14} {size:9} B  ", "  ".join(words), flush=True)
    return {"hosts": hosts, "kind": kind, "bytes": size, "times": times}


def run(hosts, options, folder, before):
    network, libraries, found = Network(hosts), [], []
    done = False
    try:
        site = Site(network, folder, options.ranks, options.algorithm)
        for name in options.libraries:
            try:
                libraries.append(Library(name, site))
            except FileNotFoundError as error:
                print(error, file=sys.stderr)
        network.favour()
        for kind, size in itertools.product(options.kinds, map(size_of, options.sizes)):
            times = measured(libraries, kind, size, options.turns, options.batch)
            found.append(show(hosts, kind, size, times))
            if options.json:
                options.json.write_text(json.dumps([*before, *found]))
        done = True
    finally:
        for library in libraries:
            library.close(patience=2 if done else 0)
        network.close()
    return found


def take_too_long(*_):
    raise TimeoutError(f"takes more than {LONGEST} s")


def listed(text):
    return text.split(",")


def main():
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("--hosts", type=lambda text: [int(each) for each in text.split(",")], default=[2, 4, 8])
    parse.add_argument("--ranks", type=int, default=1, help="of a host")
    parse.add_argument("--kinds", type=listed, default=list(KINDS))
    parse.add_argument("--sizes", type=listed, default=["8", "1K", "64K", "1M", "16M"],
                       help="bytes of the larger of a rank's arrays")
    parse.add_argument("--libraries", type=listed, default=list(LIBRARIES))
    parse.add_argument("--turns", type=int, default=9)
    parse.add_argument("--batch", type=float, default=0.05, help="seconds of a turn")
    parse.add_argument("--algorithm", default="", help="hocket's, as HOCKET_ALGORITHM takes it")
    parse.add_argument("--json", type=Path, help="write the times of all turns here")
    options = parse.parse_args()
    # An exception ends the program on these signals, so that the namespaces are deleted.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(f"ended by signal {number}"))
    signal.signal(signal.SIGALRM, take_too_long)
    found = []
    for hosts in options.hosts:
        with tempfile.TemporaryDirectory() as name:
            found += run(hosts, options, Path(name), found)


if __name__ == "__main__":
    main()
