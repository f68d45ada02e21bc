"""tools/speed/many_cores.sh: which cells it marks, what it measures, and that its archive runs anywhere."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys

import hocket_command
import pytest
from helpers import ROOT
from hocket_command import WATCHDOG

TOOL = ROOT / "tools" / "speed" / "many_cores.sh"


@pytest.fixture(scope="module")
def many_cores():
    spec = importlib.util.spec_from_file_location("many_cores", ROOT / "tools" / "speed" / "many_cores.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["many_cores"] = module
    spec.loader.exec_module(module)
    return module


def figures_of(ratios, verified=True, unfinished=(), others=("openmpi5", "mpich5", "impi"), size=8):
    """Returns the JSON that `hocket bench --json` would write for one all_reduce on four ranks."""
    case = {"collective": "all_reduce", "ranks": 4, "bytes": size}
    mine = [case | {"library": "hocket", "median_us": 2.0, "verified": verified}]
    return {
        "config": {"libraries": dict.fromkeys(("hocket", *others)), "sizes": [size]},
        "rows": [] if "hocket" in unfinished else mine,
        "ratios": [case | {"to": to, "ratio": ratio} for to, ratio in ratios.items()],
        "unfinished": [case | {"library": library} for library in unfinished],
    }


@pytest.mark.parametrize(
    "figures, text, to, counts",
    [
        # ratio to the quickest, by whose time; cells, above 1, at most 0.8, not finished
        (figures_of({"openmpi5": 0.3, "mpich5": 0.5, "impi": 0.4}), "0.50", "mpich5", (1, 0, 1, 0)),
        (figures_of({"openmpi5": 0.8, "mpich5": 0.5}), "0.80", "openmpi5", (1, 0, 1, 0)),
        (figures_of({"openmpi5": 0.81}), "0.81", "openmpi5", (1, 0, 0, 0)),
        (figures_of({"openmpi5": 1.0}), "1.00", "openmpi5", (1, 0, 0, 0)),
        (figures_of({"openmpi5": 1.0004}), "1.01*", "openmpi5", (1, 1, 0, 0)),
        (figures_of({"openmpi5": 0.1, "impi": 11.4}), "11.40*", "impi", (1, 1, 0, 0)),
        (figures_of({}, unfinished=["hocket"]), "!", None, (1, 1, 0, 1)),
        (figures_of({"openmpi5": 0.5}, unfinished=["impi"]), "0.50", "openmpi5", (1, 0, 1, 0)),
        (figures_of({"openmpi5": 0.5}, verified=False), "!", "openmpi5", (1, 1, 0, 1)),
        (figures_of({}, unfinished=["openmpi5", "mpich5", "impi"]), "-", None, (0, 0, 0, 0)),
    ],
)
def test_cells_above_the_quickest_are_marked(many_cores, figures, text, to, counts):
    (cell,) = many_cores.cells_of(figures, "core")
    assert many_cores.cell_text(cell) == text
    assert cell.to == to
    summary = many_cores.summary_of([cell])
    assert tuple(summary[name] for name in ("cells", "above_limit", "at_most_wanted", "not_finished")) == counts


@pytest.mark.parametrize("ratio, text", [(0.98, "0.98"), (1.25, "1.25"), (1.26, "1.26*")])
def test_beside_the_bare_program_a_quarter_more_is_allowed(many_cores, ratio, text):
    (cell,) = many_cores.cells_of(figures_of({"bare": ratio}, others=("bare",)), "none")
    assert many_cores.cell_text(cell) == text
    summary = many_cores.summary_of([cell])
    assert (summary["cells"], summary["bare_cells"]) == (0, 1)
    assert summary["bare_above_limit"] == ("*" in text)


@pytest.mark.parametrize(
    "measured, ranks, asked",
    [(8, 2, 8), (64, 16, 8), (128, 32, 8), (1024, 16, 1024), (60, 3, 64), (65532, 3, 65536), (12, 3, 8)],
)
def test_small_parts_stand_below_the_size_that_was_asked_for(many_cores, measured, ranks, asked):
    assert many_cores.asked_size(measured, ranks, [8, 64, 1024, 65536]) == asked


@pytest.mark.parametrize(
    "words, processors, jobs",
    [
        (
            [],
            16,
            {
                "windows-core": ((2,), ("8", "1K", "16K", "64K", "256K", "1M")),
                "send-core": ((2,), "all"),
                "calls-core": ((2, 4, 8, 16), "all"),
                "bare-core": ((2, 4, 8, 16), ("1M", "4M", "16M", "64M")),
                "windows-none": ((2,), ("8", "1K", "16K", "64K", "256K", "1M")),
                "send-none": ((2,), "all"),
                "calls-none": ((2, 4, 8, 16), "all"),
                "bare-none": ((2, 4, 8, 16), ("1M", "4M", "16M", "64M")),
            },
        ),
        (
            ["--ranks", "2,4", "--kinds", "barrier", "--sizes", "8"],
            2,
            {"calls-core": ((2,), "all"), "calls-none": ((2, 4), "all")},
        ),
        (["--ranks", "4", "--kinds", "send", "--bind", "none"], 2, {}),
        (["--kinds", "scan", "--no-bare", "--bind", "core"], 2, {"calls-core": ((2,), "all")}),
    ],
)
def test_what_is_measured(many_cores, words, processors, jobs):
    options = many_cores.parsed(words, processors)
    made = {job.name: (job.ranks, "all" if job.sizes == tuple(options.sizes) and jobs[job.name][1] == "all"
                       else job.sizes)
            for job in many_cores.jobs_of(options, processors)}
    assert made == jobs


def test_what_went_wrong_is_told_below_the_table(many_cores, tmp_path, capsys):
    figures = figures_of({"openmpi5": 0.5})
    figures["config"]["problems"] = ["mpich5 did not start\nmany lines", "the time was over before 3 of 9 points"]
    (tmp_path / "calls-core.json").write_text(json.dumps(figures))
    many_cores.make_table(tmp_path)
    said = capsys.readouterr().out
    assert "problems:\n  calls-core: mpich5 did not start\n  calls-core: the time was over before 3 of 9" in said
    assert json.loads((tmp_path / "table.json").read_text())["summary"]["cells"] == 1


def test_wrong_options_are_refused():
    for words, said in ((["--kinds", "all_reduces"], "no 'all_reduces'"), (["--ranks", "two"], "numbers")):
        done = subprocess.run([TOOL, *words], capture_output=True, text=True, timeout=WATCHDOG, check=False)
        assert done.returncode == 2 and said in done.stderr


def measures(tool, folder, environment):
    """Runs a small part of the table with a tool, and checks what comes of it."""
    done = subprocess.run(
        [tool, "--ranks", "2", "--bind", "none", "--sizes", "8,1M", "--kinds", "all_reduce,barrier,isend_window",
         "--repeats", "2", "--seconds", "90", "--out", folder],
        capture_output=True, text=True, timeout=2 * WATCHDOG, env=environment, check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    table = json.loads((folder / "table.json").read_text())
    found = {(cell["kind"], cell["asked"], cell["beside"]) for cell in table["cells"]}
    assert found == {
        ("all_reduce", 8, "mpi"), ("all_reduce", 1 << 20, "mpi"), ("barrier", 0, "mpi"),
        ("isend_window", 8, "mpi"), ("isend_window", 1 << 20, "mpi"), ("all_reduce", 1 << 20, "bare"),
    }
    assert "2 ranks, unbound: time over that of the quickest MPI" in done.stdout
    assert "problems:" not in done.stdout
    return table


def is_built():
    peers = [ROOT / ".peers" / name for name in ("openmpi5", "mpich5", "impi")]
    programs = os.path.join(os.path.dirname(os.path.realpath(hocket_command.find())), "..", "libexec", "hocket")
    return all(peer.exists() and os.path.exists(os.path.join(programs, f"bench_{peer.name}")) for peer in peers)


def test_it_measures_and_makes_the_table(tmp_path):
    if not is_built():
        pytest.skip("the other libraries are not installed (tools/setup.sh --peers)")
    measures(TOOL, tmp_path / "figures", os.environ)


def test_its_archive_runs_in_another_folder_with_nothing_set(tmp_path):
    if not is_built() or not shutil.which("strip"):
        pytest.skip("the other libraries are not installed (tools/setup.sh --peers)")
    build = os.path.dirname(os.path.dirname(os.path.realpath(hocket_command.find())))
    packed = subprocess.run(
        [TOOL, "--pack", "packed.tar"], capture_output=True, text=True, timeout=2 * WATCHDOG, cwd=tmp_path,
        env=os.environ | {"HOCKET_BUILD": build}, check=False,
    )
    assert packed.returncode == 0, packed.stderr
    other = tmp_path / "another folder"
    other.mkdir()
    subprocess.run(["tar", "xf", tmp_path / "packed.tar", "-C", other], check=True, timeout=WATCHDOG)
    table = measures(other / "many_cores" / "tools" / "speed" / "many_cores.sh", tmp_path / "figures",
                     {"PATH": "/usr/bin:/bin"})
    for run in table["config"].values():
        assert all(library["version"] for library in run["libraries"].values()), run["problems"]
        for library in run["libraries"].values():
            assert str(other) in library["starts"][0]["launch"]
