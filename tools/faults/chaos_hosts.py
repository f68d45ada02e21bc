"""The hosts on which the ranks of a chaos job run, and faults of the network between them.

Hosts are network namespaces behind a router, where root is there to make them, or pretended ones
(HOCKET_HOST). Connections are cut by taking hold of the victim's own sockets (pidfd_getfd).
"""

import contextlib
import ctypes
import os
import shutil
import socket
import subprocess

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET, CLONE_NEWNS = 0x40000000, 0x00020000
MS_REC, MS_SLAVE, MNT_DETACH = 0x4000, 0x80000, 2
PIDFD_GETFD = 438


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=20)


def why_no_namespaces():
    """Why there are none to be had; empty: there are."""
    if os.geteuid() != 0:
        return "needs root, for network namespaces"
    if shutil.which("ip") is None:
        return "needs ip (iproute2)"
    name = f"hocket-try-{os.getpid()}"
    tried = subprocess.run(["ip", "netns", "add", name], capture_output=True)
    subprocess.run(["ip", "netns", "delete", name], capture_output=True)
    return "" if tried.returncode == 0 else "this machine makes no network namespaces"


class Namespaces:
    """Hosts 10.78.<i>.2 in namespaces of their own behind a router's 10.78.<i>.1. A resource."""

    def __init__(self, hosts):
        self.owner = os.getpid()
        self.hosts = hosts
        name, router = f"hc{self.owner}", f"hc{self.owner}-r"
        self.name = name
        ip("netns", "add", router)
        ip("netns", "exec", router, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        for i in range(hosts):
            inner, outer = f"c{self.owner}h{i}", f"c{self.owner}r{i}"
            ip("netns", "add", f"{name}-{i}")
            ip("link", "add", inner, "netns", f"{name}-{i}", "type", "veth",
               "peer", "name", outer, "netns", router)
            ip("-n", f"{name}-{i}", "link", "set", "lo", "up")
            ip("-n", f"{name}-{i}", "addr", "add", f"10.78.{i}.2/24", "dev", inner)
            ip("-n", f"{name}-{i}", "link", "set", inner, "up")
            ip("-n", router, "addr", "add", f"10.78.{i}.1/24", "dev", outer)
            ip("-n", router, "link", "set", outer, "up")
            ip("-n", f"{name}-{i}", "route", "add", "default", "via", f"10.78.{i}.1")

    def enter(self, host):
        """Puts the calling process there."""
        with open(f"/run/netns/{self.name}-{host}") as space:
            done = LIBC.setns(space.fileno(), CLONE_NEWNET)
        # /sys shows the interfaces of the process that mounts it; UCX looks there.
        if (done or LIBC.unshare(CLONE_NEWNS)
                or LIBC.mount(b"none", b"/", None, MS_SLAVE | MS_REC, None)
                or LIBC.umount2(b"/sys", MNT_DETACH)
                or LIBC.mount(b"sysfs", b"/sys", b"sysfs", 0, None)):
            raise OSError(ctypes.get_errno(), "cannot enter a network namespace")

    def blackhole(self, host, toward=True, away=True):
        """From now on nothing reaches the host, nothing of it reaches others, or both."""
        router = f"{self.name}-r"
        if toward:
            ip("-n", router, "route", "add", "blackhole", f"10.78.{host}.2/32")
        if away:
            ip("-n", router, "rule", "add", "from", f"10.78.{host}.2", "blackhole")

    def heal(self, host):
        router = f"{self.name}-r"
        for words in (["route", "del", "blackhole", f"10.78.{host}.2/32"],
                      ["rule", "del", "from", f"10.78.{host}.2", "blackhole"]):
            subprocess.run(["ip", "-n", router, *words], capture_output=True)

    def close(self):
        if os.getpid() != self.owner:
            return
        for end in [*range(self.hosts), "r"]:
            subprocess.run(["ip", "netns", "delete", f"{self.name}-{end}"], capture_output=True)


def sockets_of(pid):
    """Descriptors of connected TCP sockets of a process."""
    found = []
    with contextlib.suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:"):
                    found.append(int(fd))
    return found


# UCX listens here where `tell_carriers_apart` was called: between the systems' own and jobs' ports.
UCX_PORTS = range(12_000, 20_000)


def tell_carriers_apart():
    """From now on this process can tell its connections of UCX, which it has not started."""
    os.environ["UCX_TCP_PORT_RANGE"] = f"{UCX_PORTS[0]}-{UCX_PORTS[-1]}"


def is_of_ucx(fd):
    """Returns true if one end of this process's connection is a port of UCX."""
    try:
        with socket.socket(fileno=os.dup(fd)) as one:
            if one.family != socket.AF_INET:
                return False
            return one.getsockname()[1] in UCX_PORTS or one.getpeername()[1] in UCX_PORTS
    except OSError:  # no connection, or none any more
        return False


def cut(pid, fd):
    """Cuts the TCP connection that is descriptor `fd` of process `pid`; True if it was one."""
    try:
        process = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        copy = LIBC.syscall(PIDFD_GETFD, process, fd, 0)
        if copy < 0:
            return False
        try:
            taken = socket.socket(fileno=copy)
        except OSError:  # it has become something else meanwhile
            os.close(copy)
            return False
        with taken:
            if taken.family not in (socket.AF_INET, socket.AF_INET6):
                return False
            taken.getpeername()
            taken.shutdown(socket.SHUT_RDWR)
            return True
    except OSError:
        return False
    finally:
        os.close(process)
