"""`hocket run --hosts`: jobs over hosts in network namespaces, each with an sshd of its own."""

import contextlib
import os
import pty
import signal
import subprocess
import sys
import time

import hocket_command
import pytest
from ssh_hosts import hosts, needs_sshd, nothing_left  # noqa: F401: fixtures

PROGRAM = r"""
import sys
import numpy as np
import hocket

comm = hocket.init(timeout=40)
x = np.arange(1000, dtype="float64") * (comm.rank + 1)
comm.all_reduce(x)
assert np.array_equal(x, np.arange(1000, dtype="float64") * (comm.size * (comm.size + 1) // 2))
print("hosts", list(comm.hosts), comm.intra_node.size, flush=True)
"""
PACKAGE = os.environ.get("PYTHONPATH", "")


STAYS = ["--", "sh", "-c", "trap '' TERM HUP INT; sleep 986 & while :; do sleep 985; done"]


def python(program, *arguments):
    return ["--env", f"PYTHONPATH={PACKAGE}", "--", sys.executable, "-c", program, *arguments]


@needs_sshd
@pytest.mark.parametrize(("places", "placed"), [
    ("a:2,b:2", [0, 0, 1, 1]),
    ("a,b:2,c", [0, 1, 1, 2]),
    ("root@b:1,10.78.0.2:2,b:1", None),
])
def test_ranks_of_several_hosts_compute_together(hosts, places, placed):
    if "10.78" in places:
        places = places.replace("10.78.0.2", "c")
        placed = [0, 1, 1, 0] if "root" not in places else None
    code, out, err = hosts.run("run", "--hosts", places, *python(PROGRAM))
    if placed is None:  # another name is another host for ssh, and its ranks meet those of the first
        assert code == 0 and out.count("hosts [0, 1, 1, 0]") == 4, (out, err)
        return
    assert code == 0, (out, err)
    sizes = [placed.count(host) for host in placed]
    assert sorted(out.splitlines()) == [
        f"[{rank}] hosts {placed} {size}" for rank, size in enumerate(sizes)], (out, err)


@needs_sshd
def test_a_hostfile_and_fewer_ranks_than_places(hosts, tmp_path):
    file = tmp_path / "hostfile"
    file.write_text("# all of them\n\na slots=2  # two\n\tb:1\nc 4\n")
    show = "echo $HOCKET_RANK $HOCKET_SIZE $HOCKET_LOCAL_RANK $HOCKET_LOCAL_SIZE"
    code, out, err = hosts.run("run", "--hostfile", file, "-n", "5", "--", "sh", "-c", show)
    assert code == 0, err
    assert sorted(out.splitlines()) == ["[0] 0 5 0 2", "[1] 1 5 1 2", "[2] 2 5 0 1", "[3] 3 5 0 2", "[4] 4 5 1 2"]
    code, out, err = hosts.run("run", "--hostfile", file, "-n", "2", "--", "sh", "-c", show)
    assert code == 0 and sorted(out.splitlines()) == ["[0] 0 2 0 2", "[1] 1 2 1 2"], err


@needs_sshd
def test_the_environment_that_is_named_and_the_folder_are_carried(hosts, tmp_path):
    shown = "echo $PWD/$NAMED/$GIVEN/$HOCKET_WARN/$UNNAMED/${HOCKET_RANK}"
    code, out, err = hosts.run(
        "run", "--hosts", "a,b", "--env", "NAMED", "--env", "GIVEN=it is \"so\"", "--", "sh", "-c", shown,
        env={"NAMED": "two\nlines $x", "UNNAMED": "no", "HOCKET_WARN": "17", "HOCKET_RANK": "5"}, cwd=tmp_path)
    assert code == 0, err
    for rank in (0, 1):
        assert f"[{rank}] {tmp_path}/two lines $x/it is \"so\"/17//{rank}" in out, out


@needs_sshd
def test_another_folder_and_another_path_of_hocket(hosts, tmp_path):
    (tmp_path / "here").mkdir()
    link = tmp_path / "it's hocket"
    link.symlink_to(hocket_command.find())
    code, out, err = hosts.run("run", "--hosts", "a,b", "--wdir", tmp_path / "here", "--remote-hocket", link, "--",
                               "pwd")
    assert code == 0 and sorted(out.splitlines()) == [f"[{rank}] {tmp_path}/here" for rank in (0, 1)], err


@needs_sshd
def test_output_keeps_its_lines_and_ends_with_what_was_unfinished(hosts):
    code, out, err = hosts.run("run", "--hosts", "a:2,b:1", "--", "sh", "-c",
                               "printf 'one\\ntwo'; echo to err >&2")
    assert code == 0
    assert sorted(out.splitlines()) == sorted(f"[{rank}] {word}" for rank in range(3) for word in ("one", "two"))
    assert sorted(err.splitlines()) == [f"[{rank}] to err" for rank in range(3)]


@needs_sshd
def test_prefixes_are_coloured_on_a_terminal(hosts):
    ours, theirs = pty.openpty()
    job = hosts.start("run", "--hosts", "a,b", "--", "echo", "shown", stdout=theirs, env={"NO_COLOR": ""})
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while more := os.read(ours, 1000):
            shown += more
    os.close(ours)
    job.communicate(timeout=hocket_command.WATCHDOG)
    assert {b"\x1b[36m[0]\x1b[0m shown\r\n", b"\x1b[32m[1]\x1b[0m shown\r\n"} == set(shown.splitlines(True)), shown


@needs_sshd
def test_ranks_learn_that_nobody_reads(hosts):
    job = hosts.start("run", "--no-prefix", "--hosts", "a,b", "--", "yes")
    assert job.stdout.readline() == "y\n"
    job.stdout.close()
    assert job.wait(timeout=hocket_command.WATCHDOG) == 128 + signal.SIGPIPE
    assert "was killed by SIGPIPE" in job.stderr.read()


@needs_sshd
def test_with_keep_going_a_lost_host_ends_no_other(hosts):
    job = hosts.start("run", "--keep-going", "--hosts", "a,b", "--", "sh", "-c",
                      "test $HOCKET_RANK = 0 && read -r go && echo went on || sleep 983", stdin=subprocess.PIPE)
    hosts.await_running("sleep 983", 1)
    to_b, = [pid for pid in hosts.await_running("/usr/bin/ssh ", 2)
             if " b /" in open(f"/proc/{pid}/cmdline").read().replace("\0", " ")]
    os.kill(to_b, signal.SIGKILL)
    assert "the other hosts go on" in job.stderr.readline()
    out, err = job.communicate("go\n", timeout=hocket_command.WATCHDOG)
    assert job.returncode == 0 and out == "[0] went on\n", (out, err)


@needs_sshd
def test_binary_input_and_output_pass_unchanged(hosts, tmp_path):
    data = bytes(range(256)) * 9000 + b"\x1e" * 300
    (tmp_path / "in").write_bytes(data)
    with open(tmp_path / "in", "rb") as source, open(tmp_path / "out", "wb") as target:
        code, _, err = hosts.run("run", "--no-prefix", "--hosts", "a:2,b:1", "--", "cat", stdin=source, stdout=target)
    assert code == 0, err
    assert (tmp_path / "out").read_bytes() == data


@needs_sshd
def test_the_exit_code_is_that_of_the_rank_that_failed(hosts):
    code, out, err = hosts.run("run", "--hosts", "a:2,b:2", "--", "sh", "-c",
                               "test $HOCKET_RANK = 2 && exit 7; sleep 300")
    assert code == 7, err
    assert "b: rank 2 (pid" in err and "exited with code 7; the others have 1 s to end" in err, err
    assert err.count("hocket: ") == 1, err


@needs_sshd
def test_options_of_run_hold_on_all_hosts(hosts, tmp_path):
    logs = tmp_path / "logs"
    code, out, err = hosts.run("run", "--hosts", "a:2,b:1", "--quiet", "--log-dir", logs, "--", "sh", "-c",
                               "echo $HOCKET_RANK")
    assert code == 0 and out == "[0] 0\n", (out, err)
    assert [(logs / f"rank-{rank}.out").read_text() for rank in range(3)] == ["0\n", "1\n", "2\n"]
    code, out, err = hosts.run("run", "--hosts", "a,b", "--timeout", "1", "--", "sleep", "300")
    assert code == 124 and "the time limit of 1 s is over" in err, err


@needs_sshd
def test_a_launcher_that_is_told_to_end_before_all_are_ready_ends_the_job(hosts, tmp_path):
    slow = tmp_path / "slow"
    slow.write_text(f"#!/bin/sh\ntest $(ip -o -4 addr | grep -c 10.78.1.2) = 0 || sleep 2\n"
                    f"exec {hocket_command.find()} as-host\n")
    slow.chmod(0o755)
    job = hosts.start("run", "--hosts", "a,b", "--remote-hocket", slow, *STAYS)
    there = hosts.await_running(hocket_command.find() + " as-host", 1)
    for pid in there:
        os.kill(pid, signal.SIGTERM)
    out, err = job.communicate(timeout=hocket_command.WATCHDOG)
    assert job.returncode != 0 and out == "", (job.returncode, err)


@needs_sshd
def test_255_of_a_rank_is_not_taken_for_a_failure_of_ssh(hosts):
    code, out, err = hosts.run("run", "--hosts", "a,b", "--", "sh", "-c", "if test $HOCKET_RANK = 1; then exit 255; fi")
    assert code == 255 and "rank 1 (pid" in err and "way to it" not in err, err


@needs_sshd
def test_a_killed_rank_is_named_and_not_those_that_it_took_along(hosts):
    dies = PROGRAM + """
import os, signal
if comm.rank == 2:
    os.kill(os.getpid(), signal.SIGKILL)
comm.barrier()
"""
    code, out, err = hosts.run("run", "--hosts", "a:2,b:2", *python(dies))
    assert code == 128 + signal.SIGKILL, err
    assert "hocket: b: rank 2 (pid" in err and "was killed by SIGKILL" in err, err
    assert err.count("hocket: ") == 1, err


@needs_sshd
def test_with_keep_going_the_others_go_on(hosts):
    code, out, err = hosts.run("run", "--keep-going", "--grace", "0.1", "--hosts", "a,b", "--", "sh", "-c",
                               "test $HOCKET_RANK = 1 && exit 3; sleep 1; echo went on")
    assert code == 0 and out == "[0] went on\n", (out, err)
    assert "b: rank 1 (pid" in err, err


@needs_sshd
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_ranks_of_all_hosts(hosts, number):
    job = hosts.start("run", "--hosts", "a:2,b:1,c:1", "--", "sh", "-c",
                      "trap 'echo caught; exit 0' INT TERM HUP; echo up; while :; do sleep 0.1; done")
    for _ in range(4):
        assert "up" in job.stdout.readline()
    job.send_signal(number)
    out, err = job.communicate(timeout=hocket_command.WATCHDOG)
    assert job.returncode == 128 + number, err
    assert out.count("caught") == 4, (out, err)
    assert "ending the ranks of 3 hosts" in err and err.count("hocket: ") == 1, err


@needs_sshd
def test_a_second_signal_kills_those_that_stay(hosts):
    job = hosts.start("run", "--hosts", "a,b", "--", "sh", "-c",
                      "trap '' INT; echo up; while :; do sleep 0.1; done")
    for _ in range(2):
        assert "up" in job.stdout.readline()
    job.send_signal(signal.SIGINT)
    assert "SIGINT: ending" in job.stderr.readline()
    time.sleep(0.3)
    job.send_signal(signal.SIGINT)
    out, err = job.communicate(timeout=hocket_command.WATCHDOG)
    assert job.returncode == 128 + signal.SIGINT and "SIGINT again: killing the ranks" in err, err


@needs_sshd
def test_ctrl_z_stops_the_ranks_until_the_job_goes_on(hosts):
    job = hosts.start("run", "--hosts", "a,b", "--", "sleep", "987")
    ranks = hosts.await_running("sleep 987", 2)
    job.send_signal(signal.SIGTSTP)
    await_states(ranks, "T")
    job.send_signal(signal.SIGCONT)
    await_states(ranks, "SR")
    job.send_signal(signal.SIGTERM)
    assert job.wait(timeout=hocket_command.WATCHDOG) == 128 + signal.SIGTERM
    job.communicate(timeout=hocket_command.WATCHDOG)


def await_states(pids, wanted):
    until = time.monotonic() + hocket_command.WATCHDOG
    while not all(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] in wanted for pid in pids):
        assert time.monotonic() < until
        time.sleep(0.02)


@needs_sshd
def test_a_killed_head_leaves_nothing_on_any_host(hosts):
    job = hosts.start("run", "--hosts", "a:2,b:1,c:1", *STAYS)
    hosts.await_running("sleep 985", 4)
    head, = hosts.await_running(hocket_command.find() + " run", 1)
    os.kill(head, signal.SIGKILL)
    job.communicate(timeout=hocket_command.WATCHDOG)
    hosts.await_nothing_left()


@needs_sshd
def test_a_broken_connection_ends_the_whole_job(hosts):
    job = hosts.start("run", "--hosts", "a,b", *STAYS)
    hosts.await_running("sleep 985", 2)
    to_b, = [pid for pid in hosts.await_running("/usr/bin/ssh ", 2)
             if " b /" in open(f"/proc/{pid}/cmdline").read().replace("\0", " ")]
    os.kill(to_b, signal.SIGKILL)
    out, err = job.communicate(timeout=hocket_command.WATCHDOG)
    assert job.returncode == 1 and "b: the launcher there has ended, or the way to it" in err, err
    hosts.await_nothing_left()


@needs_sshd
def test_a_killed_launcher_on_a_host_ends_the_whole_job(hosts):
    job = hosts.start("run", "--hosts", "a,b", *STAYS)
    hosts.await_running("sleep 985", 2)
    there = [pid for pid in hosts.await_running(hocket_command.find() + " as-host", 2)
             if open(f"/proc/{pid}/comm").read().strip() == "hocket"][-1]  # no guardian
    os.kill(there, signal.SIGKILL)
    out, err = job.communicate(timeout=hocket_command.WATCHDOG)
    assert job.returncode == 1 and "the launcher there has ended, or the way to it" in err, err
    hosts.await_nothing_left()


@needs_sshd
def test_hosts_that_cannot_be_reached_are_named_together_and_the_others_end(hosts):
    refused, = hosts.servers[-1:]
    refused.kill()
    refused.wait()
    try:
        code, out, err = hosts.run("run", "--hosts", "a:2,b:1,c:1,nowhere:1", *STAYS,
                                   env={"RES_OPTIONS": "timeout:1 attempts:1"})
    finally:
        hosts.servers.pop()
        hosts.start_sshd("c")
    assert code == 1 and out == "", err
    assert "host c cannot be reached: ssh: connect to host c port 22: Connection refused; is sshd running" in err
    assert "host nowhere cannot be reached: ssh: Could not resolve hostname nowhere" in err
    assert err.count("hocket: ") == 2, err


@needs_sshd
def test_a_wrong_key_and_an_unknown_host_key_come_with_their_mends(hosts):
    hosts.configure_ssh("stranger")
    try:
        code, out, err = hosts.run("run", "--hosts", "a", "--", "true")
    finally:
        hosts.configure_ssh("login")
    assert code == 1 and "Permission denied" in err and "`ssh-copy-id a`" in err, err
    known = hosts.folder / "known"
    before = known.read_text()
    known.write_text("")
    try:
        code, out, err = hosts.run("run", "--hosts", "a", "--", "true")
    finally:
        known.write_text(before)
    assert code == 1 and "Host key verification failed" in err and "by hand: `ssh a`" in err, err


@needs_sshd
def test_a_host_without_hocket_or_with_another_release_is_told(hosts, tmp_path):
    code, out, err = hosts.run("run", "--hosts", "a,b", "--remote-hocket", "/nowhere/hocket", "--", "true")
    assert code == 1, err
    for name in "ab":
        assert f"host {name} has no hocket that runs at /nowhere/hocket" in err and "--remote-hocket" in err, err
    other = tmp_path / "hocket"
    other.write_text("#!/bin/sh\nread -r _ _ token _\nprintf '\\036%s release 9.8.7\\n' \"$token\"\nexit 2\n")
    other.chmod(0o755)
    code, out, err = hosts.run("run", "--hosts", "a", "--remote-hocket", other, "--", "true")
    assert code == 1 and f"host a has hocket 9.8.7 at {other}, and this is " in err, err


@needs_sshd
def test_a_program_or_folder_that_a_host_lacks_is_told(hosts):
    code, out, err = hosts.run("run", "--hosts", "a,b", "--", "no-such-program")
    assert code == 127 and "hocket: b: there is no program 'no-such-program'" in err, err
    code, out, err = hosts.run("run", "--hosts", "b", "--wdir", "/no/such", "--", "true")
    assert code == 2 and "hocket: b: cannot work in the folder '/no/such'" in err and "--wdir" in err, err


@needs_sshd
def test_a_host_that_does_not_answer_is_told_when_the_time_is_over(hosts):
    hosts.network.blackhole(1)
    try:
        code, out, err = hosts.run("run", "--hosts", "a,b", "--join-timeout", "2", "--", "true")
    finally:
        hosts.network.heal(1)
    assert code == 124 and "no answer within 2 s from: b" in err, err


@needs_sshd
def test_a_first_host_whose_name_means_loopback_there_is_met_all_the_same(hosts, tmp_path):
    hosts.start_where_a_is_loopback_to_itself(tmp_path, 2222)
    other = ["run", "-v", "--launcher", "ssh -p 2222", "--hosts", "a:1,b:1"]
    code, out, err = hosts.run(*other, *python(PROGRAM))
    assert code == 0 and out.count("hosts [0, 1] 1") == 2 and "they meet at 10.78.0.2:" in err, (out, err)
    code, out, err = hosts.run(*other, "--rendezvous", hosts.address("a") + ":29555", *python(PROGRAM))
    assert code == 0 and "they meet at 10.78.0.2:29555" in err, err
    code, out, err = hosts.run(*other, "--rendezvous", hosts.address("b"), "--", "true")
    assert code == 1 and "hocket: a: " in err and "10.78.1.2" in err, err


@needs_sshd
def test_neither_command_lines_nor_files_have_the_key(hosts, tmp_path):
    key = tmp_path / "job.key"
    assert hocket_command.run("key", key).returncode == 0
    secret = key.read_text().strip()
    job = hosts.start("run", "--hosts", "a,b", "--key", key, "--", "sleep", "984")
    hosts.await_running("sleep 984", 2)
    lines = " ".join(hosts.left().values())
    assert "as-host" in lines and secret not in lines
    for pid in hosts.left():
        assert secret not in open(f"/proc/{pid}/environ", errors="replace").read()
    job.send_signal(signal.SIGTERM)
    job.communicate(timeout=hocket_command.WATCHDOG)


def test_a_launcher_of_ones_own_gets_the_name_and_the_command(tmp_path):
    """Hosts that are this machine: the launcher drops the name."""
    launcher = tmp_path / "launcher"
    launcher.write_text('#!/bin/sh\necho "$@" >> "$0.log"\nshift\nexec "$@"\n')
    launcher.chmod(0o755)
    for form, logged in ((f"'{launcher}'", "localhost"), (f"{launcher} on-{{host}}", "on-localhost")):
        done = hocket_command.run("run", "--hosts", "localhost:2", "--launcher", form, "--", "sh", "-c",
                                  "echo $HOCKET_RANK")
        assert done.returncode == 0 and sorted(done.stdout.split()) == ["0", "1", "[0]", "[1]"], done.stderr
        assert f"{logged} {hocket_command.find()} as-host" in (tmp_path / "launcher.log").read_text()


def test_a_launcher_that_is_not_there_or_fails_is_told():
    done = hocket_command.run("run", "--hosts", "a", "--launcher", "/no/such/launcher", "--", "true")
    assert done.returncode == 1 and "cannot run '/no/such/launcher'" in done.stderr, done.stderr
    done = hocket_command.run("run", "--hosts", "a", "--launcher", "false", "--", "true")
    assert done.returncode == 1 and "false exited with code 1" in done.stderr, done.stderr


FORMS = "HOST, HOST:4, HOST 4, HOST slots=4"


@pytest.mark.parametrize(("text", "column", "what"), [
    ("", 1, "a host's name is missing"),
    ("a,,b", 3, "a host's name is missing"),
    ("a:4,", 5, "a host's name is missing"),
    (":4", 1, "a host's name is missing"),
    ("a:", 3, "'' is no number of ranks"),
    ("a:x", 3, "'x' is no number of ranks"),
    ("a:0", 3, "'0' is no number of ranks"),
    ("b,a:-1", 5, "'-1' is no number of ranks"),
    ("a:1025", 3, "expected one from 1 to 1024"),
    ("a:99999999999999999999", 3, "is no number of ranks"),
    ("a:1000,a:25", 8, "'a' has more than 1024 ranks"),
    ("-oProxyCommand=x:4", 1, "begins with '-'"),
    ("a b:4", 1, "no ' '"),
    ("a;b:4", 1, "no ';'"),
    ("$(x):4", 1, "no '$'"),
    ("[::1:4", 1, "'[' has no ']'"),
    ("[::1]4", 6, "expected ':RANKS' behind ']'"),
    ("::1", 1, "an IPv6 address is written in brackets"),
])
def test_wrong_hosts_are_refused_with_their_place(text, column, what):
    done = hocket_command.run("run", "--hosts=" + text, "--", "true")
    assert done.returncode == 2 and done.stdout == ""
    if text:
        assert f"--hosts, column {column}: " in done.stderr
    assert what in done.stderr or not text, done.stderr


@pytest.mark.parametrize(("text", "line", "column", "what"), [
    ("a slots=4\nb slots=x\n", 2, 9, "'x' is no number of ranks"),
    ("a\n\n  b:0\n", 3, 5, "'0' is no number of ranks"),
    ("a 4 b\n", 1, 5, f"unexpected 'b'; expected one of: {FORMS}"),
    ("a:4 slots=4\n", 1, 5, f"unexpected 'slots=4'; expected one of: {FORMS}"),
    ("a max_slots=4\n", 1, 3, f"unexpected 'max_slots=4'; expected one of: {FORMS}"),
    ("# nothing\na slots=\n", 2, 9, "'' is no number of ranks"),
    ("a\tfour\n", 1, 3, "'four' is no number of ranks"),
    ("slots=4\n", 1, 1, "a host's name has no '='"),
    ("a 600\nb 1\na 600\n", 3, 1, "'a' has more than 1024 ranks"),
    ("-v 3\n", 1, 1, "begins with '-'"),
])
def test_wrong_hostfiles_are_refused_with_their_place(tmp_path, text, line, column, what):
    file = tmp_path / "hosts"
    file.write_text(text)
    done = hocket_command.run("run", "--hostfile", file, "--", "true")
    assert done.returncode == 2, done.stderr
    assert f"--hostfile {file}, line {line}, column {column}: " in done.stderr and what in done.stderr, done.stderr


@pytest.mark.parametrize(("options", "what"), [
    (["--hosts", "a:2", "-n", "3"], "-n 3: the hosts have 2 places; give them more, such as a:3"),
    (["--hosts", "a:2", "-n", "0"], "-n 0: the number of ranks must be at least 1"),
    (["--hosts", "a:2", "--hostfile", "f"], "--hosts excludes --hostfile"),
    (["--hosts", "a", "--nnodes", "2"], "--hosts excludes --nnodes"),
    (["--hosts", "a", "--join", "x"], "--hosts excludes --join"),
    (["--hosts", "a", "--env", "NOT_SET_HERE"], "--env NOT_SET_HERE: it is not set here"),
    (["--hosts", "a", "--launcher", "ssh 'x"], "--launcher ssh 'x: a quote ' has no end"),
    (["--hosts", "a", "--launcher", " "], "--launcher: expected a command"),
    (["--hosts", "a", "--rendezvous", "b:x"], "--rendezvous b:x: expected HOST:PORT"),
    (["--hostfile", "/no/such/file"], "--hostfile /no/such/file: cannot be read: No such file"),
    (["--hostfile", "/dev/null"], "--hostfile /dev/null: no host is in it"),
    ([], "--ranks is required"),
    (["-n", "1", "--wdir", "/tmp"], "--wdir requires --hosts"),
    (["-n", "1", "--launcher", "ssh"], "--launcher requires --hosts"),
    (["-n", "1", "--remote-hocket", "/x"], "--remote-hocket requires --hosts"),
])
def test_options_that_do_not_go_together_are_refused(options, what):
    done = hocket_command.run("run", *options, "--", "true")
    assert done.returncode == 2 and what in done.stderr, done.stderr
    assert subprocess.run(["pgrep", "-f", "as-hos[t] refused"], capture_output=True).returncode != 0


def test_what_is_no_briefing_is_refused():
    for text in ("", "rubbish\n", "hocket-host 0.1.0 token 5\nab", "x" * 1000, "hocket-host 0.1.0 t 99999999999\n"):
        done = hocket_command.run("as-host", input=text)
        assert done.returncode == 2 and "as-host: " in done.stderr, (text, done.stderr)
