"""`hocket doctor --hosts`, over hosts in network namespaces whose network has something wrong with it."""

import contextlib
import json
import sys

import hocket_command
import pytest
from ssh_hosts import hosts, needs_sshd, nothing_left  # noqa: F401: fixtures

pytestmark = needs_sshd


def examine(hosts, *options, names="a,b", **settings):
    """The exit code, and what the doctor found."""
    code, out, err = hosts.run("doctor", "--hosts", names, "--json", *options, **settings)
    assert err == "", err
    found = json.loads(out)
    assert code == (1 if any(problem["stops_hocket"] for problem in found["problems"]) else 0)
    return code, found


def ways(found):
    return {(way["from"], way["to"]): way["works"] for way in found["ways"]}


def told(found, *parts):
    """The mend of the one problem that has all these parts."""
    mends = [problem["mend"] for problem in found["problems"] if all(part in problem["what"] for part in parts)]
    assert len(mends) == 1, found["problems"]
    return mends[0]


def test_all_pairs_are_tried_in_both_directions(hosts):
    code, found = examine(hosts, names="a,b,c")
    assert code == 0 and found["problems"] == [], found["problems"]
    assert ways(found) == {(x, y): True for x in "abc" for y in "abc" if x != y}
    for way in found["ways"]:
        assert way["latency"] > 0 and way["bandwidth"] > 0 and way["mtu"] == 1500, way
    for host in found["hosts"]:
        uses = host["uses"]
        assert uses["address"] == hosts.address(host["name"]) and uses["interface"] == hosts.interface(host["name"])
        assert uses["store"] == "yes" and abs(host["clock"]) <= 0.01 + host["clock_error"], host


def test_the_table_is_for_people(hosts):
    code, out, err = hosts.run("doctor", "--hosts", "a,b")
    assert code == 0 and err == ""
    words = [line.split() for line in out.splitlines()]
    assert ["from", "to", "connects", "latency", "bandwidth", "MTU"] in words, out
    assert any(row[:3] == ["a", "b", "yes"] for row in words) and any(row[:3] == ["b", "a", "yes"] for row in words)
    assert any(row[:3] == ["b", "10.78.1.2", hosts.interface("b")] for row in words), out
    assert out.endswith("problems\n  none\n")


@contextlib.contextmanager
def firewall(hosts, source, target, *more):
    rule = ["from", f"10.78.{hosts.number(source)}.0/24", "to", f"10.78.{hosts.number(target)}.0/24", *more, "blackhole"]
    hosts.router("rule", "add", *rule)
    try:
        yield
    finally:
        hosts.router("rule", "delete", *rule)


def test_a_firewall_that_lets_connections_through_one_way_is_named(hosts):
    ports = {"HOCKET_PORTS": "31000-31100"}
    with firewall(hosts, "a", "b", "ipproto", "tcp", "dport", "31000-31100"):
        code, found = examine(hosts, env=ports)
    assert code == 1 and ways(found) == {("a", "b"): False, ("b", "a"): True}
    assert 31000 <= found["hosts"][1]["uses"]["port"] <= 31100
    mend = told(found, "a -> b: no connection to 10.78.1.2 port 31", "within 3 s", "from b to a connections are made")
    assert "pass TCP from a to b" in mend and "HOCKET_PORTS" in mend


def test_packets_that_are_lost_one_way_are_named_with_their_direction(hosts):
    with firewall(hosts, "c", "b"):
        code, found = examine(hosts, names="a,b,c")
    assert code == 1
    assert {pair for pair, works in ways(found).items() if not works} == {("b", "c"), ("c", "b")}
    told(found, "c -> b: no connection", "packets of UDP reach c, and none reaches b")
    told(found, "b -> c: no connection", "packets of UDP reach c, and none reaches b")


def test_dockers_bridge_is_left_out_and_told_where_it_is_asked_for(hosts):
    for name in "ab":
        hosts.ip(name, "link", "add", "docker0", "type", "bridge")
        hosts.ip(name, "addr", "add", "172.17.0.1/16", "dev", "docker0")
        hosts.ip(name, "link", "set", "docker0", "up")
    try:
        code, found = examine(hosts)
        assert code == 0 and [host["uses"]["address"] for host in found["hosts"]] == ["10.78.0.2", "10.78.1.2"]
        _, out, _ = hosts.run("doctor", "--hosts", "a,b")
        assert "interfaces that are not used\n  a: docker0 172.17.0.1\n  b: docker0 172.17.0.1\n" in out
        code, found = examine(hosts, env={"HOCKET_INTERFACE": "docker0"})
    finally:
        for name in "ab":
            hosts.ip(name, "link", "delete", "docker0")
    assert code == 1
    mend = told(found, "a and b both use the address 172.17.0.1 (docker0, docker0)")
    assert "HOCKET_INTERFACE" in mend


def test_an_interface_that_is_not_there_is_told(hosts):
    code, found = examine(hosts, env={"HOCKET_INTERFACE": "eth77"})
    assert code == 1
    for name in "ab":
        told(found, f"{name}: HOCKET_INTERFACE=eth77 is neither")


def test_a_smaller_mtu_on_the_way_is_told(hosts):
    hosts.ip("b", "link", "set", hosts.interface("b"), "mtu", "1280")
    try:
        code, found = examine(hosts)
    finally:
        hosts.ip("b", "link", "set", hosts.interface("b"), "mtu", "1500")
    assert code == 0 and all(ways(found).values())
    assert [way["mtu"] for way in found["ways"]] == [1280, 1280]
    told(found, "a -> b: packets have at most 1280 bytes on the way, and 1500 at an end")


def test_a_name_that_means_loopback_on_its_own_host_is_told(hosts, tmp_path):
    hosts.start_where_a_is_loopback_to_itself(tmp_path, 2222)
    code, found = examine(hosts, "--launcher", "ssh -p 2222")
    assert code == 0 and all(ways(found).values())
    mend = told(found, "on a its own name means 127.0.1.1", "hocket uses 10.78.0.2")
    assert "have /etc/hosts there say 10.78.0.2 for a" in mend


def test_another_key_on_a_host_is_told(hosts, tmp_path):
    keys = [tmp_path / "job.key", tmp_path / "other.key"]
    for key in keys:
        assert hocket_command.run("key", key).returncode == 0
    code, found = examine(hosts, "--key", keys[0])
    assert code == 0 and [host["facts"]["key"] for host in found["hosts"]] == ["same", "same"]
    hosts.start_sshd("a", port=2223)
    hosts.start_sshd("b", files={keys[0]: keys[1]}, port=2223)
    code, found = examine(hosts, "--launcher", "ssh -p 2223", "--key", keys[0])
    assert code == 1
    assert "mode 0600" in told(found, "b has another key in the file of --key")
    told(found, "b cannot join at 10.78.0.2:")


LATE_CLOCK = r"""
import json, sys, time
hello = sys.stdin.buffer.readline().decode().split()
sys.stdin.buffer.read(int(hello[3]))
def tell(*words):
    print(f"\x1e{hello[2]} " + " ".join(words), flush=True)
tell("release", hello[1])
tell("facts", json.dumps({"meet": "10.78.0.2", "store": "10.78.0.2:1", "ucx": "1.0"}))
for line in sys.stdin.buffer:
    if line == b"clock\n":
        tell("clock", str(time.time_ns() - 5_000_000_000))
    if line.startswith(b"go"):
        tell("listens", "{}")
    if line == b"end\n":
        tell("heard", "[]")
        break
"""


def test_a_clock_that_is_off_is_told(hosts, tmp_path):
    command = tmp_path / "hocket"
    command.write_text(f"#!{sys.executable}\n{LATE_CLOCK}")
    command.chmod(0o755)
    code, found = examine(hosts, "--remote-hocket", command, names="a")
    assert code == 0 and -5.5 < found["hosts"][0]["clock"] < -4.9, found
    assert "NTP" in told(found, "the clock of a is -5.0 s off the clock here")


def test_hosts_that_cannot_be_used_are_told_and_the_others_examined(hosts):
    code, found = examine(hosts, "--launcher", "ssh -o ConnectTimeout=1", names="a,b,nowhere",
                          env={"RES_OPTIONS": "timeout:1 attempts:1"})
    assert code == 1 and ways(found) == {("a", "b"): True, ("b", "a"): True}
    assert found["hosts"][2]["unreachable"].startswith("host nowhere cannot be reached: ssh: Could not resolve")
    code, found = examine(hosts, "--remote-hocket", "/nowhere/hocket")
    assert code == 1 and all("has no hocket that runs at" in host["unreachable"] for host in found["hosts"])


def test_long_packets_that_vanish_are_told(hosts):
    # From a to b the router drops what is longer, and what it says of that does not arrive.
    changes = [["route", "10.78.1.0/24", "dev", f"c{hosts.network.owner}r1", "mtu", "lock", "1280", "table", "77"],
               ["rule", "from", "10.78.0.0/24", "to", "10.78.1.0/24", "lookup", "77"],
               ["rule", "iif", "lo", "ipproto", "icmp", "blackhole"]]
    for kind, *words in changes:
        hosts.router(kind, "add", *words)
    try:
        code, found = examine(hosts)
    finally:
        for kind, *words in reversed(changes):
            hosts.router(kind, "delete", *words)
    assert code == 1 and ways(found) == {("a", "b"): False, ("b", "a"): True}
    mend = told(found, "a -> b: short messages pass, and long ones do not: packets of 1500 bytes are lost")
    assert "mtu 1280" in mend and "ICMP" in mend


@pytest.mark.parametrize(("options", "what"), [
    (["--hosts", "a:x"], "--hosts, column 3: 'x' is no number of ranks"),
    (["--hostfile", "/no/such/file"], "--hostfile /no/such/file: cannot be read"),
    (["--hosts", "a", "--key", "/no/such/key"], "/no/such/key"),
    (["--key", "/no/such/key"], "--key requires --hosts"),
    (["--launcher", "ssh"], "--launcher requires --hosts"),
])
def test_wrong_options_are_refused(options, what):
    done = hocket_command.run("doctor", *options)
    assert done.returncode in (1, 2) and done.stdout == "" and what in done.stderr, done.stderr
