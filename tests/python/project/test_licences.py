"""Every file has a licence and a copyright, and the package tells the same one."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import ROOT


def reuse():
    """The command `reuse` of PyPI's package: beside this interpreter, or in PATH."""
    beside = Path(sys.executable).with_name("reuse")
    return str(beside) if beside.exists() else shutil.which("reuse")


def lint(folder, seconds=50):
    command = reuse()
    if command is None:
        pytest.skip("reuse is not installed (pip install reuse)")
    return subprocess.run([command, "--root", folder, "lint"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=seconds)


@pytest.fixture(scope="module")  # reads all files, so a busy machine may need more than a test has
def linted():
    if not (ROOT / ".git").exists():
        pytest.skip("without git, results of builds count as files, too")
    return lint(ROOT, seconds=300)


def test_every_file_has_a_licence(linted):
    assert linted.returncode == 0, linted.stdout


def test_a_file_without_a_licence_is_found(tmp_path):
    shutil.copytree(ROOT / "LICENSES", tmp_path / "LICENSES")
    shutil.copy(ROOT / "REUSE.toml", tmp_path)
    (tmp_path / "file.py").write_text("print()\n")
    assert lint(tmp_path).returncode == 0
    (tmp_path / "REUSE.toml").unlink()
    assert "file.py" in lint(tmp_path).stdout


def test_the_licence_is_one_text():
    assert (ROOT / "LICENSE").read_bytes() == (ROOT / "LICENSES" / "Apache-2.0.txt").read_bytes()
    assert 'SPDX-License-Identifier = "Apache-2.0"' in (ROOT / "REUSE.toml").read_text()
    assert 'license = "Apache-2.0"' in (ROOT / "pyproject.toml").read_text()


def test_each_library_that_a_build_needs_has_a_notice():
    recipe = (ROOT / "cmake" / "HocketNeeds.cmake").read_text().split("if(HOCKET_TESTS)")[0]
    needs = set(re.findall(r"^ *hocket_needs\((\w+)", recipe, re.M)) - {"Threads"}  # part of the C library
    names = {"hwy": "Highway", "Eigen3": "Eigen", "nlohmann_json": "JSON for Modern C++"}
    notices = (ROOT / "THIRD-PARTY-NOTICES.md").read_text()
    listed = set(re.findall(r"^\| ([^|]+?) \|", notices, re.M))
    assert needs and {names.get(need, need) for need in needs} <= listed
    assert 'license-files = ["LICENSE", "THIRD-PARTY-NOTICES.md"]' in (ROOT / "pyproject.toml").read_text()
