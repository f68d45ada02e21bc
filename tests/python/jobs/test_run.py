"""`hocket run`: output, failures, signals, orphans, hand-over of the key."""

import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import hocket_command
import pytest
from hocket_command import WATCHDOG
from processes import is_running, wait_until


def sh(script):
    return ["--", "sh", "-c", script]


def python(script):
    return ["--", sys.executable, "-c", script]


# --- Output ---------------------------------------------------------------------------------------


def test_every_line_begins_with_its_rank():
    done = hocket_command.run("run", "-n", 3, *sh("echo out $HOCKET_RANK; echo err $HOCKET_RANK >&2"))
    assert done.returncode == 0
    assert sorted(done.stdout.splitlines()) == ["[0] out 0", "[1] out 1", "[2] out 2"]
    assert sorted(done.stderr.splitlines()) == ["[0] err 0", "[1] err 1", "[2] err 2"]


def test_prefix_can_be_switched_off_and_is_absent_with_one_rank():
    assert hocket_command.run("run", "-n", 2, "--no-prefix", *sh("echo x")).stdout == "x\nx\n"
    assert hocket_command.run("run", "-n", 1, *sh("printf x")).stdout == "x"


def test_lines_are_never_torn():
    script = """
import os, sys
rank = os.environ["HOCKET_RANK"]
for i in range(400):
    line = f"{i}:" + rank * (1 + 37 * i % 5000)
    for start in range(0, len(line), 1000):
        os.write(1, line[start:start + 1000].encode())
    os.write(1, b"\\n")
"""
    done = hocket_command.run("run", "-n", 3, *python(script))
    assert done.returncode == 0
    seen = {rank: 0 for rank in range(3)}
    for line in done.stdout.splitlines():
        rank, number, text = re.fullmatch(r"\[(\d)\] (\d+):(\d+)", line).groups()
        rank, number = int(rank), int(number)
        assert number == seen[rank]
        assert text == str(rank) * (1 + 37 * number % 5000)
        seen[rank] += 1
    assert set(seen.values()) == {400}


def test_long_lines_are_whole():
    """Output longer than several pipes, from two ranks at once."""
    size = 3_000_000
    done = hocket_command.run(
        "run", "-n", "2", *python(f"import os; print(os.environ['HOCKET_RANK'] * {size})")
    )
    assert sorted(done.stdout.splitlines()) == [f"[{rank}] " + str(rank) * size for rank in range(2)]


def test_a_line_without_end_does_not_keep_others_for_ever():
    script = "import os\nif os.environ['HOCKET_RANK'] == '0':\n"
    script += "    while True: os.write(1, b'x' * 65536)\nprint('here', flush=True)"
    process = hocket_command.start("run", "-n", "2", *python(script), stdout=subprocess.PIPE)
    try:
        seen = b""
        while b"[1] here" not in seen:
            seen = seen[-20:] + os.read(process.stdout.fileno(), 1 << 16)
    finally:
        process.terminate()
        process.stdout.close()
        process.wait()


def test_np_is_n():
    done = hocket_command.run("run", "-np", "2", *sh("echo $HOCKET_SIZE -np"))
    assert sorted(done.stdout.splitlines()) == ["[0] 2 -np", "[1] 2 -np"]
    done = hocket_command.run("run", "--quiet", "-np", "1", "echo", "-np", "3")
    assert done.stdout == "-np 3\n"


def test_a_line_without_an_end_is_shown_and_ended():
    done = hocket_command.run("run", "-n", 2, *sh("printf 'last of %s' $HOCKET_RANK"))
    assert sorted(done.stdout.splitlines()) == ["[0] last of 0", "[1] last of 1"]


def test_a_prompt_shows_while_the_rank_waits():
    job = hocket_command.start("run", "-n", 2, *sh("printf 'ready? '; exec sleep 1000"))
    try:
        text = ""
        deadline = time.monotonic() + WATCHDOG
        while text.count("ready? ") < 2:
            assert time.monotonic() < deadline
            if select.select([job.stdout], [], [], 0.1)[0]:
                text += os.read(job.stdout.fileno(), 4096).decode()
    finally:
        job.terminate()
        job.communicate(timeout=WATCHDOG)


def test_quiet_shows_rank_0_and_everybodys_errors():
    done = hocket_command.run(
        "run", "-n", 3, "--quiet", *sh("echo out $HOCKET_RANK; echo err $HOCKET_RANK >&2")
    )
    assert done.stdout == "[0] out 0\n"
    assert sorted(done.stderr.splitlines()) == ["[0] err 0", "[1] err 1", "[2] err 2"]


def test_log_dir_holds_what_each_rank_wrote(tmp_path):
    folder = tmp_path / "new" / "logs"
    done = hocket_command.run(
        "run", "-n", 2, "--quiet", "--log-dir", folder,
        *sh("echo out $HOCKET_RANK; printf 'err %s' $HOCKET_RANK >&2"),
    )  # fmt: skip
    assert done.returncode == 0
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "rank-0.out": "out 0\n",
        "rank-1.out": "out 1\n",
        "rank-0.err": "err 0",
        "rank-1.err": "err 1",
    }


def test_much_output_into_a_slow_reader_is_complete():
    script = "import sys; sys.stdout.write(('x' * 99 + '\\n') * 60000)"
    job = hocket_command.start("run", "-n", 2, *python(script))
    time.sleep(0.3)  # lets pipes fill; nothing depends on how long
    output, _ = job.communicate(timeout=WATCHDOG)
    assert job.returncode == 0
    assert len(output.splitlines()) == 120000


def test_a_failure_is_handled_while_nobody_reads_the_output():
    script = (
        "import os, sys, time\n"
        "if os.environ['HOCKET_RANK'] == '1': time.sleep(0.3); sys.exit(7)\n"
        "while True: print('x' * 1000)"
    )
    job = hocket_command.start("run", "-n", 2, *python(script), stdout=subprocess.PIPE)
    report = job.stderr.readline()
    assert "rank 1" in report and "code 7" in report
    job.stdout.close()
    assert job.wait(timeout=WATCHDOG) == 7
    job.stderr.close()


def test_a_reader_that_is_gone_ends_the_writers():
    job = hocket_command.start("run", "-n", 2, *sh("exec yes"))
    job.stdout.readline()
    job.stdout.close()
    assert job.wait(timeout=WATCHDOG) == 128 + signal.SIGPIPE
    job.stderr.close()


# --- What a rank gets -----------------------------------------------------------------------------


def test_ranks_know_who_they_are():
    variables = "$HOCKET_RANK $HOCKET_SIZE $HOCKET_LOCAL_RANK $HOCKET_LOCAL_SIZE"
    done = hocket_command.run("run", "-n", 2, "--no-prefix", *sh(f"echo {variables}"))
    assert sorted(done.stdout.splitlines()) == ["0 2 0 2", "1 2 1 2"]


def test_the_key_comes_by_descriptor_alone():
    script = """
import os
key = os.pread(int(os.environ["HOCKET_KEY_FD"]), 4096, 0)
assert os.pread(int(os.environ["HOCKET_KEY_FD"]), 4096, 0) == key
assert len(key) >= 32
forms = [key, key.hex().encode(), key.strip()]
pid = os.getpid()
while True:
    for name in ("cmdline", "environ"):
        try:
            text = open(f"/proc/{pid}/{name}", "rb").read()
        except OSError:
            continue
        assert not any(form in text for form in forms), (pid, name)
    pid = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
    if pid <= 1:
        break
try:
    os.pwrite(int(os.environ["HOCKET_KEY_FD"]), b"x", 0)
except OSError:
    print("sealed")
"""
    done = hocket_command.run("run", "-n", 2, "--no-prefix", *python(script))
    assert (done.returncode, done.stdout) == (0, "sealed\nsealed\n"), done.stderr


def test_no_other_descriptor_is_inherited():
    read, write = os.pipe()
    try:
        script = "import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1])"
        done = hocket_command.run("run", "-n", 2, *python(script), pass_fds=(read, write))
    finally:
        os.close(read)
        os.close(write)
    assert sorted(done.stdout.splitlines()) == ["[0] [0, 1, 2, 3]", "[1] [0, 1, 2, 3]"]


def test_standard_input_goes_to_rank_0():
    done = hocket_command.run("run", "-n", 3, *sh("cat"), input="one\ntwo\n")
    assert done.stdout == "[0] one\n[0] two\n"


def test_settings_of_the_environment():
    show = 'echo "$OMP_NUM_THREADS $PYTHONUNBUFFERED $EXTRA $OTHER"'
    options = ["--no-prefix", "--env", "EXTRA=a=b", "--env", "OTHER=", *sh(show)]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "PYTHONUN"))}
    done = hocket_command.run("run", "-n", 1, *options, env=environment)
    threads, unbuffered, extra = done.stdout.split()
    assert int(threads) >= 1 and (unbuffered, extra) == ("1", "a=b")
    environment["OMP_NUM_THREADS"] = "77"
    assert hocket_command.run("run", "-n", 1, *options, env=environment).stdout.startswith("77 ")


def test_a_program_may_follow_any_option():
    """`--env` takes one value, not the program too."""
    show = python("import os; print(os.environ['A'])")[1:]  # without the --
    for options in (["--env", "A=1"], ["--env", "A=0", "--env", "A=1", "--bind", "none"]):
        done = hocket_command.run("run", "-n", 1, *options, *show)
        assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


@pytest.mark.parametrize("name", ["HOCKET_RANK", "HOCKET_SIZE", "HOCKET_STORE", "HOCKET_JOB"])
def test_what_the_launcher_sets_is_not_the_user_s(name):
    done = hocket_command.run("run", "-n", 1, "--env", f"{name}=7", "--", "true")
    assert done.returncode == 2
    assert f"--env {name}=7: {name} is set by hocket run itself" in done.stderr


def affinities(*options, env=None):
    script = "import os; print(sorted(os.sched_getaffinity(0)))"
    done = hocket_command.run("run", "--no-prefix", *options, *python(script), env=env)
    assert done.returncode == 0, done.stderr
    return [set(map(int, line.strip("[]").split(","))) for line in done.stdout.splitlines()]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
def test_ranks_are_bound_to_disjoint_processors():
    allowed = os.sched_getaffinity(0)
    environment = {k: v for k, v in os.environ.items() if "OMP" not in k}
    for options in (["-n", 2], ["-n", 2, "--bind", "core"]):
        first, second = affinities(*options, env=environment)
        assert first and second and not first & second
        assert first | second == allowed
    assert affinities("-n", 2, "--bind", "none") == [allowed, allowed]
    assert affinities("-n", len(allowed) + 1, env=environment) == [allowed] * (len(allowed) + 1)
    environment["OMP_NUM_THREADS"] = str(len(allowed))
    assert affinities("-n", 2, env=environment) == [allowed, allowed]


def test_binding_to_more_cores_than_there_are_is_refused():
    ranks = len(os.sched_getaffinity(0)) + 1
    done = hocket_command.run("run", "-n", ranks, "--bind", "core", *sh("true"))
    assert done.returncode == 2
    assert "--bind core" in done.stderr and f"{ranks} ranks" in done.stderr


# --- Refusals -------------------------------------------------------------------------------------


def test_a_program_that_is_not_there():
    done = hocket_command.run("run", "-n", 2, "--", "surely-no-such-program")
    assert (done.returncode, done.stdout) == (127, "")
    assert "surely-no-such-program" in done.stderr


def test_a_program_that_cannot_be_executed(tmp_path):
    plain = tmp_path / "train.py"
    plain.write_text("print('hello')\n")
    done = hocket_command.run("run", "-n", 2, "--", plain)
    assert (done.returncode, done.stdout) == (126, "")
    assert "not executable" in done.stderr and "python3" in done.stderr
    assert hocket_command.run("run", "-n", 2, "--", tmp_path).returncode == 126


def test_a_program_that_exec_refuses(tmp_path):
    script = tmp_path / "script"
    script.write_text("\x01 not a program\n")
    script.chmod(0o755)
    done = hocket_command.run("run", "-n", 2, "--", script)
    assert done.returncode == 126
    assert re.search(r"rank \d could not be started.*#!", done.stderr)


@pytest.mark.parametrize("count", ["0", "-1", "1000000", "two"])
def test_a_wrong_number_of_ranks(count):
    done = hocket_command.run("run", "-n", count, *sh("echo started"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "rank" in done.stderr


# --- Failures -------------------------------------------------------------------------------------


def test_exit_code_is_that_of_the_rank_that_failed():
    done = hocket_command.run(
        "run", "-n", 4, *sh("[ $HOCKET_RANK = 2 ] && exit 42; exec sleep 1000")
    )
    assert done.returncode == 42
    assert re.search(r"^hocket: rank 2 \(pid \d+\) exited with code 42; the other 3 ranks have 1 s to end$",
                     done.stderr, re.M)  # fmt: skip


def test_the_others_may_end_by_themselves_when_a_rank_has_failed(tmp_path):
    # SIGTERM, whose default leaves no `finally`, must not come while they save what they have.
    script = f"""
import os, sys, time
import numpy, hocket
rank = int(os.environ["HOCKET_RANK"])
comm = hocket.init(timeout=50)
comm.barrier()
if rank == 1:
    os._exit(9)
try:
    comm.all_reduce(numpy.ones(3))
except hocket.PeerDied as error:
    print("told of rank", error.rank)
finally:
    time.sleep(0.3)
    open(f"{tmp_path}/{{rank}}.saved", "w").close()
"""
    done = hocket_command.run("run", "-n", 3, "--no-prefix", *python(script))
    assert done.returncode == 9, done.stderr
    assert done.stdout.count("told of rank 1") == 2, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.saved", "2.saved"]


@pytest.mark.parametrize("grace", ["0", "0.2"])
def test_when_the_grace_is_over_the_others_are_asked_to_end(grace):
    script = """
import os, signal, time
def end(number, frame):
    print("asked to end")
    raise SystemExit
signal.signal(signal.SIGTERM, end)
if os.environ["HOCKET_RANK"] == "0":
    time.sleep(1)
    os._exit(5)
time.sleep(1000)
"""
    done = hocket_command.run("run", "-n", 2, "--no-prefix", "--grace", grace, *python(script))
    assert (done.returncode, done.stdout) == (5, "asked to end\n"), done.stderr
    told = "ending the other rank" if grace == "0" else "the other rank has 0.2 s to end"
    assert told in done.stderr


@pytest.mark.parametrize("grace", ["nan", "inf", "-1", "soon"])
def test_a_wrong_grace(grace):
    done = hocket_command.run("run", "-n", 1, "--grace", grace, *sh("echo started"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "--grace" in done.stderr and len(done.stderr) < 200


@pytest.mark.parametrize("name", ["SEGV", "KILL", "ABRT"])
def test_a_signal_is_reported_by_name(name):
    done = hocket_command.run(
        "run", "-n", 3, *sh(f"[ $HOCKET_RANK = 1 ] && kill -{name} $$; exec sleep 1000")
    )
    assert done.returncode == 128 + getattr(signal, f"SIG{name}")
    assert re.search(rf"rank 1 \(pid \d+\) was killed by SIG{name}\b", done.stderr)


def test_what_a_failing_rank_said_comes_before_the_report():
    done = hocket_command.run(
        "run", "-n", 2, *sh("[ $HOCKET_RANK = 1 ] && { echo why >&2; exit 3; }; exec sleep 1000")
    )
    lines = done.stderr.splitlines()
    assert lines[0] == "[1] why"
    assert "rank 1" in lines[1] and "code 3" in lines[1]


def test_the_first_failure_is_blamed_not_those_that_follow():
    # Rank 2 has much memory, which the kernel frees before it can be reaped; rank 0 fails at once.
    script = """
import mmap, os, signal, socket, time
rank = os.environ["HOCKET_RANK"]
path = "\\0" + os.environ["HOCKET_JOB"]
if rank == "0":
    server = socket.socket(socket.AF_UNIX); server.bind(path); server.listen()
    dying = server.accept()[0].recv(20).decode()
    exiting = 0
    while not exiting & 4:  # PF_EXITING
        try: exiting = int(open(f"/proc/{dying}/stat").read().rsplit(")", 1)[1].split()[6])
        except FileNotFoundError: break
    os._exit(1)
if rank == "2":
    memory = mmap.mmap(-1, 1 << 28,
                       flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE)
    peer = socket.socket(socket.AF_UNIX)
    while peer.connect_ex(path): time.sleep(0.01)
    peer.sendall(str(os.getpid()).encode())
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(1000)
"""
    done = hocket_command.run("run", "-n", 3, *python(script))
    assert done.returncode == 137, done.stderr
    assert "rank 2" in done.stderr and "SIGKILL" in done.stderr


def test_who_left_first_is_blamed_though_others_end_sooner():
    script = """
import atexit, os, time
late = os.environ["HOCKET_RANK"] == "1"
if late: atexit.register(time.sleep, 0.1)  # runs after hocket's own
import hocket
comm = hocket.init()
comm.barrier()
if late: raise SystemExit(3)
try: comm.barrier()
except hocket.PeerDied: os._exit(1)
"""
    done = hocket_command.run("run", "-n", 3, *python(script))
    assert done.returncode == 3, done.stderr
    assert re.search(r"hocket: rank 1 \(pid \d+\) exited with code 3", done.stderr)


def test_who_exits_first_without_closing_is_blamed_though_others_end_sooner():
    # C's exit, by which Python's handlers do not run and the world is not closed. The ranks count
    # as on hosts of their own.
    script = """
import ctypes, os, time
os.environ["HOCKET_HOST"] = rank = os.environ["HOCKET_RANK"]
library = ctypes.CDLL(None)
late = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p)(lambda *_: time.sleep(0.2))
if rank == "1": library.on_exit(late, None)  # runs after hocket's own
import hocket
comm = hocket.init()
comm.barrier()
if rank == "1": library.exit(3)
try: comm.barrier()
except hocket.PeerDied as error:
    assert "rank 1" in str(error) and "ended with exit status 3" in str(error), error
    os._exit(1)
"""
    done = hocket_command.run("run", "-n", 3, *python(script))
    assert done.returncode == 3, done.stderr
    assert re.search(r"hocket: rank 1 \(pid \d+\) exited with code 3", done.stderr)


def test_a_rank_that_ends_before_it_joins_is_not_waited_for():
    script = """
import os, hocket
if os.environ["HOCKET_RANK"] != "1": hocket.init()
"""
    done = hocket_command.run("run", "-n", 3, *python(script))
    assert done.returncode == 1
    assert done.stderr.count("RendezvousError: rank 1 of 3 exited with code 0 before all ranks had joined") == 2


def test_ranks_that_ignore_sigterm_are_killed():
    job = sh("[ $HOCKET_RANK = 0 ] && exit 5; trap '' TERM; while :; do sleep 0.05; done")
    begin = time.monotonic()
    assert hocket_command.run("run", "-n", 3, *job).returncode == 5
    assert time.monotonic() - begin < WATCHDOG / 2


def test_stopped_ranks_are_ended():
    done = hocket_command.run(
        "run", "-n", 2, *sh("[ $HOCKET_RANK = 0 ] && { sleep 0.2; exit 5; }; kill -STOP $$; echo woke")
    )
    assert done.returncode == 5


def test_timeout():
    done = hocket_command.run("run", "-n", 2, "--timeout", "0.3", *sh("exec sleep 1000"))
    assert done.returncode == 124
    assert "time limit" in done.stderr


@pytest.mark.parametrize("limit", ["nan", "inf", "1e300", "0", "-1", "soon"])
def test_a_wrong_time_limit(limit):
    done = hocket_command.run("run", "-n", 1, "--timeout", limit, *sh("echo started"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "--timeout" in done.stderr and len(done.stderr) < 200


@pytest.mark.parametrize("word", ["runn", "--nosuch"])
def test_a_wrong_command_is_named(word):
    done = hocket_command.run(word)
    assert done.returncode == 2 and f"'{word}'" in done.stderr


# --- Signals --------------------------------------------------------------------------------------


def started(*arguments, ranks=2, **options):
    """A running job, each rank of which has said its process id."""
    job = hocket_command.start("run", "-n", ranks, "--no-prefix", *arguments, **options)
    pids = [int(job.stdout.readline()) for _ in range(ranks)]
    return job, pids


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_the_job(number):
    job, pids = started(*sh("echo $$; exec sleep 1000"))
    job.send_signal(number)
    _, errors = job.communicate(timeout=WATCHDOG)
    assert job.returncode == 128 + number
    assert number.name in errors
    assert not any(map(is_running, pids))


def test_a_rank_gets_ctrl_c_once_and_may_end_cleanly():
    script = """
import os, time
try:
    print(os.getpid())
    # Short sleeps: Python runs no handler for a signal that comes just before a sleep begins.
    while True: time.sleep(0.02)
except KeyboardInterrupt:
    time.sleep(0.2)
    print("ended cleanly")
"""
    job, _ = started(*python(script))
    job.send_signal(signal.SIGINT)
    output, errors = job.communicate(timeout=WATCHDOG)
    assert output == "ended cleanly\nended cleanly\n", errors
    assert job.returncode == 130


def test_a_second_ctrl_c_kills():
    job, pids = started(*sh("trap '' INT TERM; echo $$; while :; do sleep 0.05; done"))
    job.send_signal(signal.SIGINT)
    assert "SIGINT" in job.stderr.readline()
    time.sleep(0.2)  # long enough to count as a second Ctrl-C
    job.send_signal(signal.SIGINT)
    _, errors = job.communicate(timeout=WATCHDOG)
    assert "again" in errors
    assert job.returncode == 130
    assert not any(map(is_running, pids))


def at_a_terminal(arguments, answer):
    """Runs the command at a new terminal. `answer` is called with all text so far and returns
    the text to type, or nothing. Returns the text and the exit code.
    """
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(hocket_command.find(), ["hocket", *arguments])
    text = b""
    deadline = time.monotonic() + WATCHDOG
    try:
        while time.monotonic() < deadline:
            os.write(terminal, answer(text) or b"")
            if select.select([terminal], [], [], 0.1)[0]:
                text += os.read(terminal, 4096)
    except OSError:  # the terminal's other side has closed
        pass
    else:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return text, os.waitstatus_to_exitcode(status)


def test_ctrl_c_at_a_terminal():
    script = """
import signal, time
hits = []
signal.signal(signal.SIGINT, lambda *_: hits.append(1))
print("ready", flush=True)
while not hits: time.sleep(0.01)
time.sleep(0.3)
print("interrupted", len(hits), "times", flush=True)
"""
    sent = []

    def answer(text):
        if text.count(b"ready") == 2 and not sent:
            sent.append(True)
            return b"\x03"

    text, code = at_a_terminal(["run", "-n", "2", *python(script)], answer)
    assert code == 130, text
    assert text.count(b"interrupted 1 times") == 2, text
    assert b"\x1b[" in text  # prefixes have colours there


def test_rank_0_reads_the_terminal():
    typed = []

    def answer(text):
        if b"ready" in text and not typed:
            typed.append(True)
            return b"something\n"

    script = "echo ready; read x; echo got $x"
    text, code = at_a_terminal(["run", "-n", "2", *sh(script)], answer)
    assert code == 0, text
    assert b"got something" in text


def state_of(pid):
    """One letter, as ps shows it: T is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_stopped_launcher_stops_its_ranks_and_goes_on_with_them(tmp_path):
    flag = tmp_path / "go"
    # One process a rank: a shell whose child is stopped while it starts is not stopped itself.
    waits = ("import os, time; print(os.getpid(), flush=True)\n"
             "while not os.path.exists(os.environ['GO']): time.sleep(0.02)\n"
             "print('went on')")
    job, pids = started(sys.executable, "-c", waits, env={**os.environ, "GO": str(flag)})
    for _ in range(2):
        job.send_signal(signal.SIGTSTP)
        stopped = lambda pid: state_of(pid) == "T"
        wait_until(lambda: all(map(stopped, [job.pid, *pids])), "not all stop")
        job.send_signal(signal.SIGCONT)
        wait_until(lambda: not any(map(stopped, [job.pid, *pids])), "not all go on")
    flag.touch()
    output, errors = job.communicate(timeout=WATCHDOG)
    assert (job.returncode, output) == (0, "went on\nwent on\n"), errors


def test_the_time_limit_leaves_out_what_the_job_was_stopped(tmp_path):
    flag = tmp_path / "go"
    waits = 'echo $$; while [ ! -e "$GO" ]; do sleep 0.05; done; echo went on'
    job, _ = started("--timeout", "2", *sh(waits), env={**os.environ, "GO": str(flag)})
    job.send_signal(signal.SIGTSTP)
    wait_until(lambda: state_of(job.pid) == "T", "the launcher does not stop")
    time.sleep(2.5)
    job.send_signal(signal.SIGCONT)
    wait_until(lambda: state_of(job.pid) != "T", "the launcher does not go on")
    flag.touch()
    output, errors = job.communicate(timeout=WATCHDOG)
    assert (job.returncode, output) == (0, "went on\nwent on\n"), errors


def test_a_launcher_that_is_killed_while_stopped_leaves_nobody():
    job, pids = started(*sh("echo $$; exec sleep 1000"))
    job.send_signal(signal.SIGSTOP)
    wait_until(lambda: state_of(job.pid) == "T", "the launcher does not stop")
    job.kill()
    job.wait()
    wait_until(lambda: not any(map(is_running, pids)), "ranks live on")


def test_nohup_holds_for_ranks_too():
    launcher = hocket_command.find()
    command = ["nohup", launcher, "run", "-n", "2", "--no-prefix",
               *sh("echo $$; [ $HOCKET_RANK = 1 ] && exec sleep 0.2; read line; echo $line")]
    job = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
    pids = [int(job.stdout.readline()) for _ in range(2)]
    for pid in [job.pid, *pids]:
        if is_running(pid):  # rank 1 may have ended by now
            os.kill(pid, signal.SIGHUP)
    output, errors = job.communicate("still there\n", timeout=WATCHDOG)
    assert job.returncode == 0, errors
    assert output.split("\n").count("still there") == 1


# --- Output that no reader takes ------------------------------------------------------------------


def test_a_reader_that_goes_ends_the_job_quietly():
    writes = "i=0; while [ $i -lt 1000000 ]; do echo line $i; i=$((i+1)); done"
    command = f"{shlex.quote(hocket_command.find())} run -n 2 -- sh -c {shlex.quote(writes)}"
    done = subprocess.run(["bash", "-c", f"{command} | head -1; exit ${{PIPESTATUS[0]}}"],
                          capture_output=True, text=True, timeout=WATCHDOG)
    assert done.stdout.count("\n") == 1
    assert done.returncode == 128 + signal.SIGPIPE, done.stderr
    assert done.stderr.count("\n") == 1 and "SIGPIPE" in done.stderr, done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&- 2>&-"])
def test_closed_standard_streams(closed):
    ranks = "cat; echo out; echo err >&2; exit 4"
    command = f"{shlex.quote(hocket_command.find())} run -n 2 -- sh -c {shlex.quote(ranks)} {closed}"
    done = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=WATCHDOG)
    assert done.returncode == 4, done.stderr


def test_a_folder_that_is_gone(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    command = f"cd {shlex.quote(str(gone))} && rmdir {shlex.quote(str(gone))} && exec \"$@\""
    for option in ("--trace", "--audit"):
        gone.mkdir(exist_ok=True)
        done = subprocess.run(
            ["sh", "-c", command, "sh", hocket_command.find(), "run", "-n", "2", option, "calls",
             "--", "true"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=WATCHDOG)
        assert done.returncode == 2
        assert f"{option} calls: the folder that this runs in" in done.stderr, done.stderr


def test_output_that_is_lost_is_told():
    with open("/dev/full", "w") as full:
        done = subprocess.run([hocket_command.find(), "run", "-n", "2", "--", "echo", "lost"],
                              stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE,
                              text=True, timeout=WATCHDOG)
    assert done.returncode == 1
    assert "standard output: No space left on device" in done.stderr


def test_user_signals_are_passed_on():
    job, _ = started(*sh("trap 'echo got it; exit 0' USR1; echo $$; while :; do sleep 0.05; done"))
    job.send_signal(signal.SIGUSR1)
    output, _ = job.communicate(timeout=WATCHDOG)
    assert (job.returncode, output) == (0, "got it\ngot it\n")


def test_signal_mask_and_handlers_are_the_default():
    done = hocket_command.run("run", "-n", 1, "--", "cat", "/proc/self/status")
    fields = dict(line.split(":\t", 1) for line in done.stdout.splitlines() if ":\t" in line)
    assert int(fields["SigBlk"], 16) == 0
    assert not int(fields["SigIgn"], 16) & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGCHLD - 1))


# --- Orphans --------------------------------------------------------------------------------------

# A rank, a child, and a grandchild in a new session, all of which ignore every signal that they
# can.
FAMILY = """
import os, signal, subprocess, sys, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)
child = subprocess.Popen(["sh", "-c", "setsid sleep 1000 & echo $!; exec sleep 1000"],
                         stdout=subprocess.PIPE, text=True)
grandchild = int(child.stdout.readline())
print(os.getpid(), child.pid, grandchild, flush=True)
time.sleep(1000)
"""


def family():
    job = hocket_command.start("run", "-n", 2, "--no-prefix", *python(FAMILY))
    pids = [int(pid) for _ in range(2) for pid in job.stdout.readline().split()]
    assert len(pids) == 6 and all(map(is_running, pids))
    return job, pids


def guardian_of(rank_pid):
    with open(f"/proc/{rank_pid}/stat", encoding="ascii") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def finish(job):
    job.stdout.close()
    job.stderr.close()
    return job.wait(timeout=WATCHDOG)


def test_nobody_survives_when_the_launcher_is_killed():
    job, pids = family()
    guardian = guardian_of(pids[0])
    job.kill()
    finish(job)
    wait_until(lambda: not any(map(is_running, [*pids, guardian])), "processes survived")


def test_nobody_survives_when_the_guardian_is_killed():
    job, pids = family()
    os.kill(guardian_of(pids[0]), signal.SIGKILL)
    assert finish(job) != 0
    assert not any(map(is_running, pids))


def test_nobody_survives_a_failure_or_an_end():
    job, pids = family()
    os.kill(pids[0], signal.SIGKILL)
    assert finish(job) == 128 + signal.SIGKILL
    assert not any(map(is_running, pids))
    done = hocket_command.run("run", "-n", 2, "--no-prefix", *sh("setsid sleep 1000 & echo $!"))
    assert done.returncode == 0
    assert not any(is_running(int(pid)) for pid in done.stdout.split())


def test_starting_from_a_thread():
    import threading

    results = []
    threads = [
        threading.Thread(target=lambda: results.append(hocket_command.run("run", "-n", 2, *sh("echo x"))))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WATCHDOG)
    assert [sorted(done.stdout.split()) for done in results] == [["[0]", "[1]", "x", "x"]] * 4


def test_a_key_that_is_given_is_the_jobs_on_one_host_too(tmp_path):
    key = tmp_path / "key"
    key.write_text(bytes(range(32)).hex())
    key.chmod(0o600)
    script = "import os; print(os.pread(int(os.environ['HOCKET_KEY_FD']), 32, 0).hex())"
    done = hocket_command.run("run", "-n", 1, "--key", key, *python(script))
    assert (done.returncode, done.stdout.strip()) == (0, bytes(range(32)).hex()), done.stderr
    done = hocket_command.run("run", "-n", 1, "--key", tmp_path / "none", *sh("true"))
    assert done.returncode == 1 and str(tmp_path / "none") in done.stderr


@pytest.mark.parametrize("option", [["--rendezvous", "127.0.0.1:2"], ["--node-rank", "0"]])
def test_what_is_for_several_hosts_asks_how_many_there_are(option):
    done = hocket_command.run("run", "-n", 1, *option, *sh("true"))
    assert done.returncode == 2 and option[0] in done.stderr and "--nnodes" in done.stderr
