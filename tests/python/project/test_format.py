"""The sources of C and C++ are laid out as .clang-format says, by the pinned release of the tool."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SUFFIXES = ["*.c", "*.cc", "*.cpp", "*.cu", "*.cuh", "*.h"]


def clang_format() -> str:
    found = shutil.which("clang-format", path=str(Path(sys.executable).parent))
    if found is None:
        pytest.skip("no clang-format beside this Python; tools/setup.sh installs it")
    return found


def misplaced(files: list[Path]) -> set[str]:
    """The files among these that the tool would change."""
    run = subprocess.run([clang_format(), "--dry-run", *map(str, files)], cwd=ROOT, text=True,
                         capture_output=True, check=True)
    warnings = [line for line in run.stderr.splitlines() if "[-Wclang-format-violations]" in line]
    return {line.split(":")[0] for line in warnings}


def test_every_source_is_formatted():
    if not (ROOT / ".git").exists():
        pytest.skip("the files of the project are known by git")
    listed = subprocess.run(["git", "ls-files", "-z", *SUFFIXES], cwd=ROOT, text=True,
                            capture_output=True, check=True).stdout
    files = [Path(name) for name in listed.split("\0") if name and (ROOT / name).exists()]
    assert files
    wrong = misplaced(files)
    assert not wrong, f"run .venv/bin/clang-format -i {' '.join(sorted(wrong))}"


def test_a_wrong_layout_is_found(tmp_path):
    (tmp_path / ".clang-format").write_text((ROOT / ".clang-format").read_text())
    source = tmp_path / "wrong.cc"
    source.write_text("int  main( ){return 0;}\n")
    assert misplaced([source]) == {str(source)}
    subprocess.run([clang_format(), "-i", str(source)], check=True)
    assert misplaced([source]) == set()
