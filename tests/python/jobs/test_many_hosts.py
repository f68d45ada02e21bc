"""Jobs of several hosts: network namespaces behind a router, with one launcher in each."""

import ctypes.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
import hocket_command

HOCKET = hocket_command.find()

PORT = 29471
PROGRAM = r"""
import os, signal, sys, time
import numpy as np
import hocket

comm = hocket.init(timeout=60)
n = comm.size
for count in (1, 1000, 300_000):
    x = np.arange(count, dtype="float64") * (comm.rank + 1)
    comm.all_reduce(x)
    assert np.array_equal(x, np.arange(count, dtype="float64") * (n * (n + 1) // 2)), count
print("hosts", list(comm.hosts), comm.intra_node.size, comm.inter_node.size, flush=True)
comm.barrier()
deed, who = os.environ.get("DEED", ""), int(os.environ.get("WHO", "-1"))
if deed:
    print("ready", os.getpid(), flush=True)
    while not os.path.exists(os.environ["GO"]):
        time.sleep(0.005)
    if deed == "kill" and comm.rank == who:
        os.kill(os.getpid(), signal.SIGKILL)
    if deed == "leave" and comm.rank == who:
        sys.exit(0)
    while deed == "leave" and os.path.exists(os.environ["GO"]):
        time.sleep(0.005)
    began = time.monotonic()
    try:
        for _ in range(100 if deed == "loop" else 1):
            comm.all_reduce(np.zeros(10), timeout=30)
        print("no error", flush=True)
    except hocket.Error as error:
        text = str(error).replace(chr(10), " ")
        print(f"{type(error).__name__} {time.monotonic() - began:.3f} {text}", flush=True)
    # How a process ended may be known a moment after that it did; later errors then say it.
    while "MANNER" in os.environ and time.monotonic() - began < 20:
        try:
            comm.barrier(timeout=30)
        except hocket.PeerDied as later:
            if later.signal == signal.SIGKILL and "SIGKILL" in str(later):
                print("later", str(later).replace(chr(10), " "), flush=True)
                break
        time.sleep(0.002)
    # A rank that knows stays until all do: it may be the only one that can tell them.
    while "MANNER" in os.environ and os.path.exists(os.environ["GO"]):
        time.sleep(0.005)
    if "REBUILD" in os.environ:
        me = comm.rank
        try:
            comm = comm.rebuild(timeout=40)
            total = int(comm.all_reduce(np.array(me + 1)))
            assert total == sum(rank + 1 for rank in comm.world_ranks), total
            print("rebuilt", list(comm.world_ranks), comm.intra_node.size, flush=True)
        except hocket.RendezvousError as error:
            print("refused", " ".join(str(error).split()), flush=True)
"""


TRAFFIC = r"""
import glob
import numpy as np
import hocket

def sent():  # by this host, since its interface is there
    return sum(int(open(path).read()) for path in glob.glob("/sys/class/net/v*/statistics/tx_bytes"))

comm = hocket.init(timeout=60)
n, rank, calls, count = comm.size, comm.rank, 3, 1 << 18
first = comm.intra_node.rank == 0
x = np.arange(count, dtype="float64")
part = np.arange(count // n, dtype="float64") + rank
wanted = np.concatenate([np.arange(count // n, dtype="float64") + r for r in range(n)])

def all_reduce():
    assert np.array_equal(comm.all_reduce(x * (rank + 1)), x * (n * (n + 1) // 2))
def all_gather():
    assert np.array_equal(comm.all_gather(part).ravel(), wanted)
def broadcast():
    y = x * 3 if rank == 1 else np.zeros(count)
    comm.broadcast(y, root=1)
    assert np.array_equal(y, x * 3)

for call, array in ((all_reduce, x), (all_gather, wanted), (broadcast, x)):
    call()
    comm.barrier()
    before = sent()
    comm.barrier()  # nobody begins before all have looked
    for _ in range(calls):
        call()
    comm.barrier()
    if first:
        print("sent", call.__name__, (sent() - before) / (calls * array.nbytes), flush=True)
    comm.barrier()
"""


LISTENS = r"""
import hocket

def listening():  # the ports of this host, which has a network of its own
    for family in ("tcp", "tcp6"):
        with open("/proc/net/" + family) as table:
            for line in list(table)[1:]:
                address, _, state = line.split()[1:4]
                if state == "0A":
                    yield int(address.rsplit(":", 1)[1], 16)

comm = hocket.init(timeout=60)
comm.barrier()
print("listens", *sorted(listening()), flush=True)
comm.barrier()
"""


def missing():
    if os.geteuid() != 0:
        return "needs root, for network namespaces"
    if shutil.which("ip") is None:
        return "needs ip (iproute2)"
    if ctypes.util.find_library("ucp") is None:
        return "there is no UCX here (libucp.so.0)"
    tried = subprocess.run(["ip", "netns", "add", "hocket-try"], capture_output=True)
    subprocess.run(["ip", "netns", "delete", "hocket-try"], capture_output=True)
    return "" if tried.returncode == 0 else "this machine makes no network namespaces"


WHY_NOT = missing()
pytestmark = pytest.mark.skipif(WHY_NOT != "", reason=WHY_NOT or "-")


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=20)


class Network:
    """Host i is namespace hk<pid>-<i>, 10.77.<i>.2, behind the router's 10.77.<i>.1."""

    def __init__(self, hosts):
        self.name = f"hk{os.getpid()}"
        self.hosts = hosts
        ip("netns", "add", f"{self.name}-r")
        for i in range(hosts):
            host, inner, outer = f"{self.name}-{i}", f"v{os.getpid()}h{i}", f"v{os.getpid()}r{i}"
            ip("netns", "add", host)
            ip("link", "add", inner, "netns", host, "type", "veth",
               "peer", "name", outer, "netns", f"{self.name}-r")
            ip("-n", host, "link", "set", "lo", "up")
            ip("-n", host, "addr", "add", f"10.77.{i}.2/24", "dev", inner)
            ip("-n", host, "link", "set", inner, "up")
            ip("-n", f"{self.name}-r", "addr", "add", f"10.77.{i}.1/24", "dev", outer)
            ip("-n", f"{self.name}-r", "link", "set", outer, "up")
            ip("-n", host, "route", "add", "default", "via", f"10.77.{i}.1")
        self.forward(True)

    def forward(self, on):
        ip("netns", "exec", f"{self.name}-r", "sh", "-c",
           f"echo {int(on)} > /proc/sys/net/ipv4/ip_forward")

    def cut_off(self, host):
        """Drops all packets from there and to there."""
        for way in ("from", "to"):
            ip("-n", f"{self.name}-r", "rule", "add", way, f"10.77.{host}.0/24", "blackhole")

    def block(self, source, target, ports):
        """A firewall in one direction: no connection from there to these ports."""
        rule = ["ipproto", "tcp", "dport", f"{ports[0]}-{ports[-1]}", "blackhole"]
        ip("-n", f"{self.name}-r", "rule", "add", "from", f"10.77.{source}.0/24",
           "to", f"10.77.{target}.0/24", *rule)

    def close(self):
        for end in [*range(self.hosts), "r"]:
            subprocess.run(["ip", "netns", "delete", f"{self.name}-{end}"], capture_output=True)


@pytest.fixture
def network():
    made = Network(3)
    yield made
    made.close()


class Job:
    """One launcher a host, with `ranks` each, or as many as `ranks` says of each."""

    def __init__(self, network, folder, hosts, ranks, options=(), program=PROGRAM, keys=False,
                 **environment):
        """`keys`: each launcher has a key of its own."""
        files = [folder / f"job{i}.key" for i in range(hosts if keys else 1)]
        for key in files:
            subprocess.run([HOCKET, "key", str(key)], check=True, capture_output=True)
        self.go = folder / "go"
        counts = [ranks] * hosts if isinstance(ranks, int) else ranks
        environment = {**os.environ, "GO": str(self.go), **environment}
        self.launchers = [
            subprocess.Popen(
                ["ip", "netns", "exec", f"{network.name}-{i}", HOCKET, "run", "-n", str(counts[i]),
                 "--nnodes", str(hosts), "--node-rank", str(i), "--key", str(files[i % len(files)]),
                 "--rendezvous", f"10.77.0.2:{PORT}", "--timeout", "90", *options,
                 "--", sys.executable, "-c", program],
                env=environment, text=True, stdout=open(folder / f"out{i}", "w+"),
                stderr=subprocess.STDOUT)
            for i in range(hosts)
        ]
        self.outputs = [folder / f"out{i}" for i in range(hosts)]

    def text(self):
        return "".join(output.read_text() for output in self.outputs)

    def await_text(self, what, times):
        until = time.monotonic() + 60
        while self.text().count(what) < times:
            assert time.monotonic() < until, self.text()
            time.sleep(0.02)

    def finish(self):
        try:
            codes = [launcher.wait(timeout=100) for launcher in self.launchers]
        finally:
            for launcher in self.launchers:
                if launcher.poll() is None:
                    launcher.send_signal(signal.SIGKILL)
        return codes, self.text()


@pytest.mark.parametrize("way", ["auto", "direct"])
def test_a_job_of_three_hosts_computes_the_same(network, tmp_path, way):
    codes, text = Job(network, tmp_path, hosts=3, ranks=2, HOCKET_UCX_BULK=way).finish()
    assert codes == [0, 0, 0], text
    assert text.count("hosts [0, 0, 1, 1, 2, 2] 2 3") == 6, text


def test_each_host_may_have_a_number_of_ranks_of_its_own(network, tmp_path):
    codes, text = Job(network, tmp_path, hosts=3, ranks=[1, 3, 2]).finish()
    assert codes == [0, 0, 0], text
    for host, ranks in enumerate([1, 3, 2]):
        assert text.count(f"hosts [0, 1, 1, 1, 2, 2] {ranks} ") == ranks, text


# In arrays, or of all_gather in results: what all hosts send together, were there one rank on each.
def one_rank_a_host(hosts):
    return {"all_reduce": 2 * (hosts - 1), "all_gather": hosts - 1, "broadcast": hosts - 1}


def sent_in(text):
    total = {}
    for call, arrays in re.findall(r"sent (\w+) ([\d.]+)", text):
        total[call] = total.get(call, 0) + float(arrays)
    return total


def test_what_leaves_a_host_is_that_of_one_rank(network, tmp_path):
    codes, text = Job(network, tmp_path, hosts=2, ranks=3, program=TRAFFIC).finish()
    assert codes == [0, 0], text
    sent = sent_in(text)
    for call, arrays in one_rank_a_host(2).items():
        # Beside the arrays: headers, acknowledgements, what is sent again, and what lanes say, which
        # has been up to a seventh.
        assert 0.99 * arrays < sent[call] < 1.35 * arrays, (call, sent[call], text)


def test_without_levels_more_leaves_a_host(network, tmp_path):
    # Algorithms that ignore hosts would fail the test above.
    codes, text = Job(network, tmp_path, hosts=2, ranks=3, program=TRAFFIC, HOCKET_ALGORITHM=
                      "all_reduce=scattered,all_gather=direct,broadcast=scatter_ring").finish()
    assert codes == [0, 0], text
    sent = sent_in(text)
    for call, arrays in one_rank_a_host(2).items():
        assert sent[call] > 1.5 * arrays, (call, sent[call], text)


def test_a_death_on_another_host_is_named_everywhere(network, tmp_path):
    job = Job(network, tmp_path, hosts=2, ranks=2, DEED="kill", WHO="2")
    job.await_text("ready", 4)
    job.go.touch()
    codes, text = job.finish()
    assert codes[1] != 0
    # Ranks of the other host report it. Rank 3 is ended by its own launcher, and may report or not.
    there = job.outputs[0].read_text()
    assert there.count("PeerDied") == 2 and there.count("rank 2 (pid") == 2, text


def test_how_a_rank_of_another_host_ended_is_known(network, tmp_path):
    # Rank 3, which finds it out, is left alone by its launcher until it has.
    job = Job(network, tmp_path, hosts=2, ranks=2, options=["--keep-going"], DEED="kill", WHO="2",
              MANNER="1")
    job.await_text("ready", 4)
    job.go.touch()
    job.await_text("later rank 2 (pid", 3)
    job.go.unlink()
    codes, text = job.finish()
    assert codes == [0, 0], text


def test_a_host_that_falls_silent_is_lost(network, tmp_path):
    job = Job(network, tmp_path, hosts=2, ranks=1, DEED="blackhole", HOCKET_SILENCE="0.5")
    job.await_text("ready", 2)
    network.forward(False)
    job.go.touch()
    _, text = job.finish()
    assert text.count("PeerDied") == 2, text
    assert text.count("its host has fallen silent") == 2, text


def test_hosts_with_nothing_to_say_are_heard(network, tmp_path):
    job = Job(network, tmp_path, hosts=2, ranks=1, DEED="rest", HOCKET_SILENCE="0.3")
    job.await_text("ready", 2)
    time.sleep(10.6)  # a host that is there is taken for silent after ten seconds at the earliest
    job.go.touch()
    codes, text = job.finish()
    assert codes == [0, 0] and text.count("no error") == 2, text


def test_a_host_whose_ranks_have_no_turn_for_some_seconds_is_not_lost(network, tmp_path):
    """As on a host with far more processes than processors; its kernel is there all the time."""
    job = Job(network, tmp_path, hosts=2, ranks=1, DEED="rest", HOCKET_SILENCE="0.5")
    job.await_text("ready", 2)
    rank = int(re.search(r"ready (\d+)", job.outputs[1].read_text()).group(1))
    os.kill(rank, signal.SIGSTOP)
    job.go.touch()
    time.sleep(5)
    os.kill(rank, signal.SIGCONT)
    codes, text = job.finish()
    assert codes == [0, 0] and text.count("no error") == 2, text


def test_who_leaves_while_the_network_has_a_gap_has_left_and_not_died(network, tmp_path):
    for _ in range(5):
        job = Job(network, tmp_path, hosts=2, ranks=1, DEED="leave", WHO="1")
        job.await_text("ready", 2)
        network.forward(False)
        began = time.monotonic()
        job.go.touch()
        time.sleep(0.3)
        network.forward(True)
        gap = time.monotonic() - began
        job.launchers[1].wait(timeout=60)
        job.go.unlink()
        codes, text = job.finish()
        assert codes == [0, 0], text
        if gap < 0.6:  # who leaves waits for a second
            break
    assert text.count("PeerDied") == 1 and "rank 1 (pid" in text, text
    assert "ended in good order" in text, text


def test_the_others_go_on_without_a_dead_rank(network, tmp_path):
    job = Job(network, tmp_path, hosts=3, ranks=2, options=["--keep-going"], DEED="kill", WHO="2",
              REBUILD="1")
    job.await_text("ready", 6)
    job.go.touch()
    codes, text = job.finish()
    assert codes == [0, 0, 0], text
    assert text.count("rebuilt [0, 1, 3, 4, 5]") == 5, text


@pytest.mark.parametrize("lost", [0, 2])
def test_of_a_cut_network_the_greater_part_goes_on(network, tmp_path, lost):
    job = Job(network, tmp_path, hosts=3, ranks=2, DEED="cut", REBUILD="1", HOCKET_SILENCE="1.5")
    job.await_text("ready", 6)
    network.cut_off(lost)
    job.go.touch()
    _, text = job.finish()
    left = [rank for rank in range(6) if rank // 2 != lost]
    assert text.count(f"rebuilt {left} 2") == 4, text
    there = job.outputs[lost].read_text()
    assert there.count("refused") == 2 and there.count("not the greater part") == 2, text


def test_a_host_that_is_heard_no_longer_is_told_by_whom(network, tmp_path):
    """What host 0 sends is lost, and what host 1 sends arrives."""
    job = Job(network, tmp_path, hosts=2, ranks=1, DEED="loop", HOCKET_SILENCE="1")
    job.await_text("ready", 2)
    ip("-n", f"{network.name}-r", "rule", "add", "from", "10.77.0.0/24", "to", "10.77.1.0/24", "blackhole")
    job.go.touch()
    _, text = job.finish()
    assert text.count("PeerDied") == 2, text
    here, there = (output.read_text().split("PeerDied")[1] for output in job.outputs)
    assert "rank 0 (pid" in there and "(10.77.0.2:" in there, text
    assert "rank 1 (pid" in here and "(10.77.1.2:" in here, text
    assert "rank 0 (pid" not in here, text
    for words in (here, there):
        assert "in all_reduce #" in words, text


def test_an_address_that_another_machine_has_taken_is_no_death(network, tmp_path):
    job = Job(network, tmp_path, hosts=2, ranks=1, DEED="taken", HOCKET_SILENCE="1")
    job.await_text("ready", 2)
    ip("-n", f"{network.name}-r", "addr", "add", "10.77.1.2/32", "dev", f"v{os.getpid()}r0")
    job.go.touch()
    _, text = job.finish()
    here = job.outputs[0].read_text().split("PeerDied")[1]
    assert "rank 1 (pid" in here and "(10.77.1.2:" in here, text
    assert "another machine has taken its address" in here or "has fallen silent" in here, text
    assert " died" not in here, text


def test_of_two_halves_the_one_with_the_first_rank_goes_on(network, tmp_path):
    job = Job(network, tmp_path, hosts=2, ranks=2, DEED="cut", REBUILD="1", HOCKET_SILENCE="1")
    job.await_text("ready", 4)
    network.forward(False)
    job.go.touch()
    _, text = job.finish()
    assert job.outputs[0].read_text().count("rebuilt [0, 1] 2") == 2, text
    assert job.outputs[1].read_text().count("not the greater part") == 2, text


def test_hosts_that_cannot_reach_each_other_are_both_named(network, tmp_path):
    # Hosts 1 and 2 reach host 0, where the ranks meet, and not each other.
    for source, target in ((1, 2), (2, 1)):
        ip("-n", f"{network.name}-{source}", "route", "add", "unreachable", f"10.77.{target}.0/24")
    codes, text = Job(network, tmp_path, hosts=3, ranks=1).finish()
    assert all(code != 0 for code in codes)
    named = [line for line in text.splitlines()
             if "cannot reach" in line and "10.77.1.2:" in line and "10.77.2.2:" in line]
    assert len(named) >= 3, text


def add_bridge(network, host, kind):
    """An interface as Docker makes it: of the same name and address on each host."""
    name = f"{network.name}-{host}"
    port = "port0" if kind == "bridge" else "docker0"
    ip("-n", name, "link", "add", port, "type", "veth", "peer", "name", "inner0")
    if kind == "bridge":  # it is up once something is attached to it
        ip("-n", name, "link", "add", "docker0", "type", "bridge")
        ip("-n", name, "link", "set", port, "master", "docker0")
    ip("-n", name, "addr", "add", "172.17.0.1/16", "dev", "docker0")
    for link in {port, "inner0", "docker0"}:
        ip("-n", name, "link", "set", link, "up")


@pytest.mark.parametrize("kind", ["veth", "bridge"])
@pytest.mark.parametrize("settings", [{}, {"UCX_TLS": "tcp"}, {"UCX_NET_DEVICES": "{own}"}],
                         ids=["plain", "tcp", "devices"])
def test_a_bridge_with_one_address_on_all_hosts_is_no_way_between_them(network, tmp_path, kind, settings):
    for host in range(2):
        add_bridge(network, host, kind)
    # UCX leaves out those of the hosts' own interfaces that are not there.
    own = ",".join(f"v{os.getpid()}h{host}" for host in range(2))
    environment = {name: value.format(own=own) for name, value in settings.items()}
    codes, text = Job(network, tmp_path, hosts=2, ranks=2, **environment).finish()
    assert codes == [0, 0], text
    assert text.count("hosts [0, 0, 1, 1] 2 2") == 4, text


PORTS = range(31000, 31032)


@pytest.mark.parametrize("ranks", [1, 4])
def test_ranks_listen_on_the_ports_that_they_are_given(network, tmp_path, ranks):
    codes, text = Job(network, tmp_path, hosts=2, ranks=ranks, program=LISTENS,
                      HOCKET_PORTS=f"{PORTS[0]}-{PORTS[-1]}").finish()
    assert codes == [0, 0], text
    heard = [[int(port) for port in line.split()] for line in re.findall("listens (.*)", text)]
    assert len(heard) == 2 * ranks, text
    for ports in heard:
        assert set(ports) <= {*PORTS, PORT}, text
        # A lane's and UCX's.
        assert len(set(ports) - {PORT}) == 2 * ranks, text


def refused_ways(text, source, target):
    """The errors that name both ends."""
    return [line for line in text.splitlines()
            if "RendezvousError" in line and f"10.77.{source}.2:" in line and f"10.77.{target}.2:" in line]


@pytest.mark.parametrize("hosts, ranks, source, target",
                         [(2, 1, 0, 1), (2, 1, 1, 0), (2, 3, 0, 1), (2, 3, 1, 0), (3, 2, 1, 2), (3, 2, 2, 1)])
def test_a_firewall_in_one_direction_is_found_before_the_first_call(
        network, tmp_path, hosts, ranks, source, target):
    network.block(source, target, PORTS)
    codes, text = Job(network, tmp_path, hosts=hosts, ranks=ranks,
                      HOCKET_PORTS=f"{PORTS[0]}-{PORTS[-1]}").finish()
    assert all(code != 0 for code in codes), text
    assert len(refused_ways(text, source, target)) == hosts * ranks, text
    ways = refused_ways(text, source, target)
    assert all(f"10.77.{source}.2:" in way.split("cannot reach")[0] for way in ways), text
    assert "PeerDied" not in text, text


@pytest.mark.parametrize("ways", [[(0, 1), (1, 0)], [(0, 1)]], ids=["both", "there"])
def test_each_carrier_is_tried_before_the_first_call(network, tmp_path, ways):
    """The lanes' ports are open, and UCX's are not, in one direction or in both."""
    own = range(31100, 31132)
    for source, target in ways:
        network.block(source, target, own)
    codes, text = Job(network, tmp_path, hosts=2, ranks=2, HOCKET_PORTS=f"{PORTS[0]}-{PORTS[-1]}",
                      UCX_TCP_PORT_RANGE=f"{own[0]}-{own[-1]}").finish()
    assert all(code != 0 for code in codes), text
    assert len(refused_ways(text, 0, 1)) == 4 and "by UCX" in text, text
    assert "PeerDied" not in text, text


def test_a_way_that_ucx_does_not_need_is_no_error(network, tmp_path):
    """Two ranks of UCX share one connection, which the one with the lower address makes."""
    own = range(31100, 31132)
    network.block(1, 0, own)
    codes, text = Job(network, tmp_path, hosts=2, ranks=1, HOCKET_PORTS=f"{PORTS[0]}-{PORTS[-1]}",
                      UCX_TCP_PORT_RANGE=f"{own[0]}-{own[-1]}").finish()
    assert codes == [0, 0] and text.count("hosts [0, 1] 1 2") == 2, text


@pytest.mark.parametrize("ports", ["31000-31000", "31000-31002"])
def test_too_few_ports_are_an_error_that_names_them(network, tmp_path, ports):
    codes, text = Job(network, tmp_path, hosts=2, ranks=2, program=LISTENS,
                      HOCKET_PORTS=ports).finish()
    assert all(code != 0 for code in codes), text
    low, high = ports.split("-")
    assert text.count(f"no port from {low} to {high} is free") >= 4, text


def test_a_wrong_key_is_told_on_both_hosts(network, tmp_path):
    job = Job(network, tmp_path, hosts=2, ranks=1, keys=True)
    job.launchers[1].wait(timeout=60)
    job.await_text("a process on 10.77.1.2 came to the store at 10.77.0.2", 1)
    job.launchers[0].send_signal(signal.SIGINT)
    codes, text = job.finish()
    assert codes[0] == 128 + signal.SIGINT and codes[1] != 0, text
    assert "do not share a key" in job.outputs[1].read_text(), text


def test_a_launcher_without_what_it_needs_says_so(tmp_path):
    def refused(*words):
        done = subprocess.run([HOCKET, "run", "-n", "1", *words, "--", "true"], text=True,
                              capture_output=True, timeout=30)
        assert done.returncode != 0
        return done.stderr

    assert "--rendezvous" in refused("--nnodes", "2")
    assert "key" in refused("--nnodes", "2", "--rendezvous", "10.77.0.2:29471")
    assert "0 to 1" in refused("--nnodes", "2", "--node-rank", "2")
