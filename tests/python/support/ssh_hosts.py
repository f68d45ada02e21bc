"""Hosts in network namespaces, each with an sshd that takes one key, and a command `ssh` that knows them.

The hosts are named a, b, c, ... in their /etc/hosts; a further one, the head, is where commands run.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import time

import hocket_command
import pytest

sys.path.insert(0, str(hocket_command.ROOT / "tools" / "faults"))
import chaos_hosts  # noqa: E402

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def why_not():
    """Why these hosts cannot be had here; empty: they can."""
    if SSHD is None or shutil.which("ssh") is None:
        return "needs sshd and ssh (tools/setup.sh --daemons)"
    return chaos_hosts.why_no_namespaces()


WHY_NOT = why_not()
needs_sshd = pytest.mark.skipif(WHY_NOT != "", reason=WHY_NOT or "-")


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """Hosts a, b and c, for all tests of a module."""
    made = SshHosts(tmp_path_factory.mktemp("hosts"), "abc")
    yield made
    made.close()


@pytest.fixture(autouse=True)
def nothing_left(request):
    """No test leaves a process on its hosts."""
    yield
    if "hosts" in request.fixturenames:
        request.getfixturevalue("hosts").await_nothing_left()


class SshHosts:
    """Hosts NAMES in namespaces, with a head behind the same router. A resource."""

    def __init__(self, folder, names):
        self.folder = pathlib.Path(folder)
        self.names = list(names)
        self.network = chaos_hosts.Namespaces(len(self.names) + 1)
        self.servers = []
        self.hosts_file = self.folder / "hosts"
        self.write_names({name: self.address(name) for name in self.names})
        for kind in ("login", "host", "stranger"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / kind], check=True)
        host_key = (self.folder / "host.pub").read_text()
        (self.folder / "known").write_text("".join(f"{name} {host_key}" for name in self.names))
        self.configure_ssh("login")
        for name in self.names:
            self.start_sshd(name)

    def address(self, name):
        """The address of a host; "" is the head."""
        return f"10.78.{self.number(name)}.2"

    def number(self, name):
        return self.names.index(name) if name else len(self.names)

    def write_names(self, addresses, file=None):
        lines = [f"{address} {name}\n" for name, address in addresses.items()]
        (file or self.hosts_file).write_text("127.0.0.1 localhost\n" + "".join(lines))

    def configure_ssh(self, key):
        """From now on `ssh` shows this key."""
        config = self.folder / "ssh_config"
        config.write_text(f"User root\nIdentityFile {self.folder / key}\nIdentitiesOnly yes\nUserKnownHostsFile "
                          f"{self.folder / 'known'}\nGlobalKnownHostsFile /dev/null\n")
        command = self.folder / "bin" / "ssh"
        command.parent.mkdir(exist_ok=True)
        command.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {config} "$@"\n')
        command.chmod(0o755)

    def inside(self, name, *words, files=()):
        """The words of a command that runs on a host, which sees `files` in the place of others."""
        seen = {"/etc/hosts": self.hosts_file, **dict(files)}
        mounts = "".join(f"mount --bind {file} {place} && " for place, file in seen.items())
        return ["ip", "netns", "exec", f"{self.network.name}-{self.number(name)}", "unshare", "-m", "sh", "-c",
                mounts + 'exec "$@"', "sh", *map(str, words)]

    def ip(self, name, *words):
        chaos_hosts.ip("-n", f"{self.network.name}-{self.number(name)}", *words)

    def router(self, *words):
        chaos_hosts.ip("-n", f"{self.network.name}-r", *words)

    def interface(self, name):
        return f"c{self.network.owner}h{self.number(name)}"

    def start_sshd(self, name, files=(), port=22):
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        config = self.folder / "sshd_config"
        config.write_text(f"HostKey {self.folder / 'host'}\nAuthorizedKeysFile {self.folder / 'login.pub'}\n"
                          "StrictModes no\nUsePAM no\nPermitRootLogin yes\nPasswordAuthentication no\nPidFile none\n"
                          "MaxStartups 100\n")
        self.servers.append(subprocess.Popen(
            self.inside(name, SSHD, "-D", "-e", "-f", config, "-p", port, files=files), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=open(self.folder / f"sshd-{name}.log", "w")))
        self.await_port(name, port)

    def start_where_a_is_loopback_to_itself(self, folder, port):
        """Start a's and b's sshd at another port. Host a's own name means 127.0.1.1 there."""
        own = folder / "hosts-of-a"
        self.write_names({"a": "127.0.1.1", "b": self.address("b")}, own)
        self.start_sshd("a", files={"/etc/hosts": own}, port=port)
        self.start_sshd("b", port=port)

    def await_port(self, name, port):
        tried = ("import socket, sys\n"
                 "socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=1).close()")
        until = time.monotonic() + hocket_command.WATCHDOG
        while subprocess.run(self.inside("", sys.executable, "-c", tried, self.address(name), port),
                             capture_output=True).returncode != 0:
            assert time.monotonic() < until, f"no sshd on {name}"
            time.sleep(0.05)

    def start(self, *arguments, name="", **options):
        """Starts `hocket ARGUMENTS` on the head, or on a host."""
        environment = {**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
                       **options.pop("env", {})}
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen(self.inside(name, hocket_command.find(), *arguments), env=environment, text=True,
                                start_new_session=True, **options)

    def run(self, *arguments, **options):
        """The same, to its end: its exit code, standard output and standard error."""
        started = self.start(*arguments, **options)
        out, err = started.communicate(timeout=hocket_command.WATCHDOG)
        return started.returncode, out, err

    def left(self):
        """What runs on the hosts and the head, apart from the servers: number and command line."""
        spaces = {os.stat(f"/run/netns/{self.network.name}-{i}").st_ino for i in range(len(self.names) + 1)}
        servers = {server.pid for server in self.servers}
        found = {}
        for folder in pathlib.Path("/proc").iterdir():
            try:
                if int(folder.name) not in servers and os.stat(folder / "ns" / "net").st_ino in spaces:
                    found[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
            except (OSError, ValueError):
                continue
        return found

    def await_nothing_left(self):
        until = time.monotonic() + hocket_command.WATCHDOG
        while left := self.left():
            assert time.monotonic() < until, f"left behind: {left}"
            time.sleep(0.05)

    def await_running(self, sign, count):
        """Waits until so many processes on the hosts have this text in their command line; their numbers."""
        until = time.monotonic() + hocket_command.WATCHDOG
        while len(found := [pid for pid, line in self.left().items() if line.startswith(sign)]) < count:
            assert time.monotonic() < until, self.left()
            time.sleep(0.05)
        return found

    def close(self):
        for server in self.servers:
            server.kill()
            server.wait()
        self.network.close()
