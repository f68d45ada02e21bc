"""`hocket run` under limits of its process: it survives, or names the limit and ends well."""

import os
import resource
import socket
import subprocess
import sys

import hocket_command
import pytest
from processes import with_package

MIB = 1 << 20
HELLO = "import hocket; c = hocket.init(timeout=20); c.barrier(); print('hello', c.rank)"


def run(arguments, limits=(), closed=(), **user):
    def prepare():
        for which, value in limits:
            resource.setrlimit(which, (value, value))
        for fd in closed:
            os.close(fd)

    return subprocess.run(
        [hocket_command.find(), "run", *arguments], env=with_package(), preexec_fn=prepare,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        timeout=50, check=False, **user,
    )


# The words that must be said, where the job cannot run: a limit by the name that shells have for it.
LIMITS = [
    ("no file", [(resource.RLIMIT_FSIZE, 0)], "ulimit -f"),
    ("files of 31 bytes", [(resource.RLIMIT_FSIZE, 31)], "ulimit -f"),
    ("small files", [(resource.RLIMIT_FSIZE, 64 << 10)], "ulimit -f"),
    ("files below the shared memory", [(resource.RLIMIT_FSIZE, 64 * MIB)], "ulimit -f"),
    *((f"a stack of {kib} KiB", [(resource.RLIMIT_STACK, kib << 10)], "ulimit -s")
      for kib in (24, 32, 64, 96, 127, 128, 192, 256)),
    ("no locked memory", [(resource.RLIMIT_MEMLOCK, 0)], "ulimit -l"),
    ("a second of the processor", [(resource.RLIMIT_CPU, 1)], "SIGXCPU"),
    ("10 MiB of data", [(resource.RLIMIT_DATA, 10 * MIB)], "-d"),
    *((f"{number} descriptors", [(resource.RLIMIT_NOFILE, number)], "ulimit -n")
      for number in (4, 6, 8, 12, 16, 24, 32)),
]


@pytest.mark.parametrize(("limits", "words"), [case[1:] for case in LIMITS],
                         ids=[case[0] for case in LIMITS])
def test_a_limit_is_named(limits, words):
    done = run(["-n", "2", "--", sys.executable, "-c", HELLO], limits)
    said = done.stdout + done.stderr
    assert done.returncode >= 0, said  # no signal has ended it
    if done.returncode == 0:
        assert said.count("hello") == 2, said
    else:
        assert words in said and "seccomp" not in said, said


# The limit counts the threads of users other than root: the launcher has three, each rank two.
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user, and has no such limit")
@pytest.mark.parametrize("threads", [1, 2, 4, 5, 7, 8, 20])
def test_a_limit_of_processes_is_named(threads):
    user = {"user": 45_000 + threads, "group": 65_534, "extra_groups": []}
    try:
        seen = run(["-n", "1", "--", sys.executable, "-c", "import hocket"], **user)
    except PermissionError:
        pytest.skip("another user cannot come to the command")
    if seen.returncode != 0:
        pytest.skip("another user cannot come to the package")
    limit = [(resource.RLIMIT_NPROC, threads)]
    done = run(["-n", "3", "--", sys.executable, "-c", HELLO], limit, **user)
    said = done.stdout + done.stderr
    assert done.returncode >= 0, said  # no signal has ended it
    if done.returncode == 0:
        assert said.count("hello") == 3, said
    else:
        assert "ulimit -u" in said and "Resource temporarily unavailable" in said, said
    assert (done.returncode == 0) >= (threads >= 20), said


def test_output_beyond_the_limit_of_files_is_told(tmp_path):
    with (tmp_path / "out").open("w") as out:
        done = subprocess.run(
            [hocket_command.find(), "run", "-n", "1", "--", sys.executable, "-c",
             "print('x' * 100_000)"],
            env=with_package(), stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE,
            text=True, timeout=50, check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
        )
    assert done.returncode == 1 and "not all output could be written" in done.stderr, done.stderr


@pytest.mark.parametrize("closed", [[0], [1], [2], [0, 1], [1, 2], [0, 1, 2]], ids=str)
def test_closed_standard_descriptors(closed, tmp_path):
    program = f"open({str(tmp_path)!r} + '/' + __import__('os').environ['HOCKET_RANK'], 'w').write('here')"
    done = run(["-n", "2", "--", sys.executable, "-c", program], closed=closed)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "0").read_text() == (tmp_path / "1").read_text() == "here"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make links of other users")
@pytest.mark.parametrize("link", ["file", "folder"])
def test_logs_do_not_follow_a_link_of_another_user(tmp_path, link):
    precious = tmp_path / "precious"
    precious.write_text("kept")
    logs = tmp_path / "logs"
    if link == "file":
        logs.mkdir()
        (logs / "rank-0.out").symlink_to(precious)
        os.lchown(logs / "rank-0.out", 4711, 4711)
    else:
        (tmp_path / "elsewhere").mkdir()
        logs.symlink_to(tmp_path / "elsewhere")
        os.lchown(logs, 4711, 4711)
    done = run(["-n", "1", "--log-dir", str(logs), "--", "echo", "lost"])
    assert done.returncode == 2 and "link that user 4711 made" in done.stderr, done.stderr
    assert precious.read_text() == "kept"


IRREGULAR = {
    "fifo": os.mkfifo,
    "link to a fifo": lambda path: (os.mkfifo(f"{path}.fifo"), os.symlink(f"{path}.fifo", path)),
    "device": lambda path: os.symlink("/dev/null", path),
    "socket": lambda path: socket.socket(socket.AF_UNIX).bind(path),
    "folder": os.mkdir,
}


@pytest.mark.parametrize("name", ["rank-1.out", "rank-0.err"])
@pytest.mark.parametrize("kind", IRREGULAR)
def test_logs_are_regular_files(tmp_path, monkeypatch, kind, name):
    """Whatever else stands at a log's place is refused by name, and nothing hangs."""
    monkeypatch.chdir(tmp_path)  # a socket's path is short
    IRREGULAR[kind](name)
    done = run(["-n", "2", "--log-dir", str(tmp_path), "--", "echo", "lost"])
    assert done.returncode in (1, 2) and f"{tmp_path}/{name}" in done.stderr, done.stderr
    assert "not a regular file" in done.stderr or kind == "folder", done.stderr


def test_logs_follow_a_link_of_ones_own(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "rank-0.out").symlink_to(tmp_path / "elsewhere")
    done = run(["-n", "1", "--log-dir", str(tmp_path / "logs"), "--", "echo", "found"])
    assert done.returncode == 0 and (tmp_path / "elsewhere").read_text() == "found\n", done.stderr
