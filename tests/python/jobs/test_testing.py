"""The pytest plugin, run on tests that end in all ways."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import ROOT
from processes import with_package

CASES = Path(__file__).parents[1] / "support" / "testing_cases.py"
# Errors that end a rank's wait once another rank has ended the test.
CONSEQUENCE = r"(Aborted|PeerDied|KeyboardInterrupt)"


def run_pytest(*arguments, cwd=ROOT):
    """pytest's output, without colours."""
    environment = with_package()
    command = [sys.executable, "-m", "pytest", "-p", "hocket.testing.plugin", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--color=no", "-rA", *map(str, arguments)],
        env=environment,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=150,
    )
    return done.stdout


def outcomes(output):
    """Each test's, from the summary at the end: {name: "PASSED"}, and the reasons."""
    found = dict((m[2], m[1]) for m in re.finditer(r"^(PASSED|FAILED|ERROR) \S+?::(\S+(?: ranks?[^\]]*\])?)",
                                                   output, re.M))
    return found


@pytest.fixture(scope="module", params=["threads", "processes"])
def output(request):
    options = ["--hocket-processes"] if request.param == "processes" else []
    return run_pytest("--no-header", *options, CASES)


def section(output, name):
    """Returns pytest's report of one test that failed."""
    found = re.search(rf"^_+ (?:ERROR at setup of )?{re.escape(name)} _+$\n(.*?)(?=^_____|^=====)",
                      output, re.M | re.S)
    assert found, f"nothing about {name} in\n{output}"
    return found[1]


@pytest.mark.parametrize(
    "name",
    [
        *(f"test_well[{n}]" for n in ("1 rank", "2 ranks", "4 ranks")),
        "test_async[2 ranks]",
        "test_comes_late[2 ranks]",
        "test_computes_long[2 ranks]",
        "TestInAClass::test_method[2 ranks-1]",
        "TestInAClass::test_method[2 ranks-2]",
        "TestFaults::test_kill[3 ranks]",
        "TestFaults::test_stop[3 ranks]",
        "TestFaults::test_delay[3 ranks]",
    ],
)
def test_what_passes(output, name):
    assert outcomes(output).get(name) == "PASSED", output


# For each way in which a test fails, the lines of its report.
FAILURES = {
    "test_fails[3 ranks]": [
        r"> +assert seen == \[1, 2, comm.rank \+ 3\]",
        r"E +assert \[1, 2, 3\] == \[1, 2, 4\]",
        r"At index 2 diff: 3 != 4",
        r"rank 1 of 3",
        rf"rank 0: {CONSEQUENCE}",
        rf"rank 2: {CONSEQUENCE}",
        r"seen by rank 1",
    ],
    "test_async_fails[2 ranks]": [r"> +assert comm.rank == 0", r"rank 1 of 2"],
    "test_yields[2 ranks]": [r"TypeError: test_yields yields, so nothing of it has run"],
    "test_fails_while_others_compute[3 ranks]": [r"> +raise KeyError", r"rank 2 of 3"],
    "test_exits[3 ranks]": [r"> +sys.exit\(3\)", r"rank 1 of 3: SystemExit: 3"],
    "test_returns_early[3 ranks]": [r"> +comm.barrier\(\)", r"rank 1 \(pid \d+\) (ended in good order|has returned from what it was called for)"],
    "test_never_comes[3 ranks]": [
        r"testing_cases.py\", line \d+, in test_never_comes\n +threading.Event\(\).wait",
        r"rank 1 of 3: did nothing for 0.5 s, while others wait for it; it is at ",
        rf"rank 0: {CONSEQUENCE}",
    ],
    "test_time_is_over[2 ranks]": [r"rank \d of 2: has not ended after 0.7 s"],
    "TestFaults.test_no_such_rank[3 ranks]": [r"kill: rank is 7, and there is none"],
    "TestFaults.test_exits_hard[3 ranks]": [r"rank 2 of 3: process \d+ exited with code 7"],
    "TestFaults.test_crashes[3 ranks]": [
        r"rank 2 of 3: process \d+ was killed by SIGSEGV",
        r"\[2\] Fatal Python error: Segmentation fault",
    ],
    **{
        f"TestFaults.test_stops_itself[3 ranks-{calls}]": [
            r"rank 0 of 3: did nothing for 0.5 s, while others wait for it; it is stopped by a signal",
        ]
        for calls in (0, 1)
    },
    "TestFaults.test_is_replaced[3 ranks]": [r"rank 0 of 3: process \d+ replaced its program \(exec\)"],
    "test_fault_of_a_thread[2 ranks]": [r"only ranks that are processes can be sent signals"],
    "test_communicator_in_a_fixture[2 ranks]": [r"a communicator is there in the test alone"],
    "test_unmarked": [r"the fixture comm is for tests that are marked"],
}


@pytest.mark.parametrize("name", FAILURES)
def test_what_fails(output, name):
    shown = section(output, name)
    for pattern in FAILURES[name]:
        assert re.search(pattern, shown), f"{pattern!r} is not in\n{shown}"


def test_a_skip(output):
    assert re.search(r"^SKIPPED \[1\] .*not on rank 1", output, re.M), output


def test_a_fixture_that_cannot_be_sent():
    case = f"{CASES}::test_fixture_that_cannot_be_sent"
    assert "1 passed" in run_pytest(case)
    output = run_pytest("--hocket-processes", case)
    assert "the value of the fixture request cannot be sent to the ranks" in output, output


def test_it_runs_beside_xdist():
    pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    output = run_pytest("-n", 2, "--hocket-processes", CASES, "-k", "well or kill or test_fails or exits_hard")
    found = outcomes(output)
    wanted = {f"test_well[{n}]": "PASSED" for n in ("1 rank", "2 ranks", "4 ranks")}
    wanted |= {"TestFaults::test_kill[3 ranks]": "PASSED", "test_fails[3 ranks]": "FAILED",
               "TestFaults::test_exits_hard[3 ranks]": "FAILED"}
    assert wanted.items() <= found.items(), output
    assert "rank 2 of 3: process" in output and "At index 2 diff: 3 != 4" in output


@pytest.mark.parametrize("mark", ["", "0", "2.0", "2, patients=1"])
def test_marks_that_are_wrong(tmp_path, mark):
    case = tmp_path / "test_case.py"
    case.write_text(f"import pytest\n\n@pytest.mark.ranks({mark})\ndef test_it(comm):\n    pass\n")
    output = run_pytest(case)
    assert re.search(r"ranks.* on .*test_it", output), output


@pytest.mark.parametrize("options", [[], ["--hocket-processes"]])
def test_the_example(options):
    assert "4 passed" in run_pytest(*options, ROOT / "examples" / "testing")


def test_the_page_shows_what_pytest_says(tmp_path):
    page = (ROOT / "docs" / "testing.md").read_text()
    (program, shown) = re.search(r"```python\n(.*?)```.*?```text\n(.*?)```", page, re.S).groups()
    (tmp_path / "test_mean.py").write_text(program)
    output = run_pytest("--no-header", "-rN", "--rootdir", ".", "test_mean.py", cwd=tmp_path)
    said = {line.strip() for line in output.splitlines()}
    for line in shown.splitlines():
        assert line.strip() in said, output


def test_nothing_is_left_of_the_processes(tmp_path):
    case = tmp_path / "test_case.py"
    case.write_text(
        "import os, pytest\n\n@pytest.mark.ranks(3)\ndef test_it(comm):\n"
        "    print('process', os.getpid(), 'of', comm.rank)\n    assert comm.rank != 2\n"
    )
    output = run_pytest("--hocket-processes", case)
    pids = [int(pid) for pid in re.findall(r"process (\d+) of \d", output)]
    assert len(set(pids)) == 3, output
    assert not [pid for pid in pids if os.path.exists(f"/proc/{pid}")]
