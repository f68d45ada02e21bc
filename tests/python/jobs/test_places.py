"""Warnings and `hocket top` name the file and line where a Python rank is that others wait for."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import hocket_command
import pytest
from processes import BUILD, run_job, with_package

from hocket._command import find_command

SUPPORT = Path(__file__).parents[1] / "support"

PROGRAM = """
import os, sys, time
import numpy as np
import hocket

def lingers(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        {how}

def body(comm):
    comm.barrier()
    if comm.rank == 1:
        lingers(4)
    comm.all_reduce(np.ones(3))
    comm.barrier()

if sys.argv[1] == "threads":
    hocket.run_threads(body, 3)
else:
    body(hocket.init())
"""


def lines_of(text):
    return [line for line in text.splitlines() if "has waited" in line]


def write(tmp_path, how):
    program = tmp_path / "train.py"
    program.write_text(PROGRAM.format(how=how))
    (line,) = [number for number, text in enumerate(program.read_text().splitlines(), 1)
               if text.strip() == how]
    return program, line


@pytest.mark.parametrize("how", ["time.sleep(0.2)", "sum(range(1000))"])
def test_a_warning_names_the_line_of_a_process(tmp_path, how):
    program, line = write(tmp_path, how)
    job = run_job(3, program, "processes", env={"HOCKET_WARN": "0.5"})
    assert job.returncode == 0, job.stdout
    said = lines_of(job.stdout)
    # A loop may be seen at its head.
    places = [re.search(r", at (\S+):(\d+) in lingers$", text) for text in said]
    assert all("for rank 1 " in text for text in said) and said, job.stdout
    assert any(place and place[1].endswith("train.py") and line - 1 <= int(place[2]) <= line
               for place in places), said


def test_a_warning_names_the_line_of_a_thread(tmp_path):
    program, line = write(tmp_path, "time.sleep(0.2)")
    done = subprocess.run(
        [sys.executable, program, "threads"], capture_output=True, text=True, timeout=100,
        env=with_package(HOCKET_WARN="0.5"),
    )
    assert done.returncode == 0, done.stderr
    said = lines_of(done.stderr)
    assert any("for rank 1 " in text and "now sleeping in" in text and
               re.search(rf", at \S*train.py:({line - 1}|{line}) in lingers$", text)
               for text in said), done.stderr


def test_nothing_is_said_where_the_interpreter_is_held(tmp_path):
    # PyDLL keeps the GIL.
    program, _ = write(tmp_path, "__import__('ctypes').PyDLL(None).usleep(3000000)")
    job = run_job(3, program, "processes", env={"HOCKET_WARN": "0.5"})
    assert job.returncode == 0, job.stdout
    said = lines_of(job.stdout)
    assert said and "now sleeping in" in said[0] and ", at " not in said[0], job.stdout


def test_nothing_is_said_where_the_rank_says_no(tmp_path):
    program, _ = write(tmp_path, "time.sleep(0.2)")
    job = run_job(3, program, "processes", env={"HOCKET_WARN": "0.5", "HOCKET_TOP": "0"})
    assert job.returncode == 0, job.stdout
    said = lines_of(job.stdout)
    assert said and not any(", at " in text for text in said), job.stdout


ON_GPUS = """
import sys, time
sys.path.insert(0, sys.argv[1])
import numpy as np
import hocket
from fake_gpu import Array, Driver

driver = Driver()
comm = hocket.init(engines=[sys.argv[3]])
driver.use(comm.rank)
stream = driver.stream()
x, y = Array(driver, np.ones(100)), Array(driver, np.ones(7))
comm.all_reduce(x, stream=stream)
driver.synchronize(stream)

def lingers():
    time.sleep(4)

if sys.argv[2] == "come":  # its stream has not
    if comm.rank == 1:
        go = driver.fill_later(y.address, np.ones(7), stream)
        comm.all_reduce(x, stream=stream)
        comm.send(np.ones(1), 0)
        lingers()
        go()
    else:
        comm.recv(np.ones(1), 1)
        comm.all_reduce(x, stream=stream)
    driver.synchronize(stream)
    comm.barrier()
    sys.exit()

if comm.rank == 1:
    lingers()
if sys.argv[2] == "work":
    comm.all_reduce_async(x, stream=stream).synchronize()
elif sys.argv[2] == "stream":  # which waits in the first of them
    comm.all_reduce(x, stream=stream)
    comm.all_reduce(y, stream=stream)
elif comm.rank == 0:
    comm.recv(x, source=1, stream=stream)
else:
    comm.send(x, 0, stream=stream)
driver.synchronize(stream)
comm.barrier()
"""


def run_on_gpus(by, engine, **settings):
    driver = BUILD / ("fake_peer" if engine == "peer" else "fake_cuda")
    if not driver.exists():
        pytest.skip("this build has no fake driver, or no GPU kernels")
    nccl = BUILD / "fake_nccl" / "libnccl.so.2" if engine == "nccl" else "none"
    job = run_job(2, "-c", ON_GPUS, SUPPORT, by, engine,
                  env={"LD_LIBRARY_PATH": str(driver), "HOCKET_WARN": "1.5",
                       "HOCKET_NCCL_LIBRARY": str(nccl),  # the driver `fake_peer` has hocket's sources
                       "GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=16384", **settings})
    assert job.returncode == 0, job.stdout
    return job


@pytest.mark.parametrize("engine", ["nccl", "shm", "peer"])
@pytest.mark.parametrize("by", ["work", "stream", "message"])
def test_a_wait_for_a_gpu_is_warned_of(engine, by):
    job = run_on_gpus(by, engine)
    said = lines_of(job.stdout)
    call = (r"recv of float64\[100\] from rank 1 tag 0" if by == "message"
            else r"all_reduce #\d+ sum float64\[100\] on GPUs")
    waits = rf"rank 0 has waited \S+ s in {call} on world for rank 1 "
    assert said and all(re.search(waits, text) for text in said), job.stdout
    assert any(text.endswith(" in lingers") for text in said), said
    assert "has gone on after" in job.stdout


@pytest.mark.parametrize("engine", ["nccl", "shm", "peer"])
def test_nothing_is_said_of_a_stream_where_all_have_come_to_its_call(engine):
    said = run_on_gpus("come", engine).stdout
    assert "all_reduce #" not in said, said


def top(*arguments):
    return hocket_command.run("top", *arguments)


def await_line(pid):
    """Returns the entry of `top` for rank 1 of process `pid`'s job, once it includes a place."""
    until = time.monotonic() + 40
    while True:
        found = json.loads(top("--json", "--seconds", "0.1", pid).stdout)["jobs"][0]
        rank = next((each for each in found["ranks"] if each["rank"] == 1), {})
        if rank.get("place"):
            return found, rank
        assert time.monotonic() < until, found


@pytest.mark.parametrize("ranks", ["threads", "processes"])
def test_top_names_the_line(tmp_path, ranks):
    program, line = write(tmp_path, "time.sleep(60)")
    program.write_text(program.read_text().replace("comm.barrier()", "comm.barrier(); tell(comm)")
                       .replace("def body", "def tell(comm):\n    "
                                "comm.rank == 1 and print(os.getpid(), flush=True)\n\ndef body"))
    launch = [find_command(), "run", "-n", "3", "--"] if ranks == "processes" else []
    process = subprocess.Popen(
        [*launch, sys.executable, program, ranks], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env=with_package(HOCKET_WARN="2"),
    )
    try:
        pid = int(re.search(r"\d+$", process.stdout.readline().strip())[0])
        found, rank = await_line(pid)
        assert found["threads"] == (ranks == "threads") and found["blamed"] == [1]
        assert found["pids"] == [pid] if ranks == "threads" else len(found["pids"]) == 3
        assert re.search(rf"train.py:{line} in lingers$", rank["place"])
        assert "sleeping in" in rank["process"]
        shown = top("--once", "--rank", 1, "--columns", 250, "--seconds", "0.1", pid).stdout
        assert re.search(rf"rank 1 holds up 2 ranks: sleeping in \S+.*, at \S*train.py:{line} in",
                         shown), shown
        assert re.search(rf"^at \S*train.py:{line} in lingers$", shown, re.M), shown
    finally:
        process.terminate()
        process.communicate(timeout=30)


def test_threads_can_say_no(tmp_path):
    program, _ = write(tmp_path, "print('there', flush=True), time.sleep(60)")
    process = subprocess.Popen(
        [sys.executable, program, "threads"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
        env=with_package(HOCKET_TOP="0"),
    )
    try:
        assert "there" in process.stdout.readline()
        refused = top(process.pid)
        assert refused.returncode == 1 and "is no rank of a job" in refused.stderr
    finally:
        process.kill()
        process.communicate(timeout=30)
