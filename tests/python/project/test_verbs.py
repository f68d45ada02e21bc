"""tools/docs/verbs.txt is the one list of verbs. Each name is there in its language, and no public call is
missing from the list."""

import importlib.util
import re
import shutil
import subprocess
import sys

import pytest
from helpers import ROOT, fortran_module

import hocket
import hocket.sparse

spec = importlib.util.spec_from_file_location("verbs", ROOT / "tools" / "docs" / "verbs.py")
verbs = importlib.util.module_from_spec(spec)
sys.modules["verbs"] = verbs  # where dataclasses look
spec.loader.exec_module(verbs)
VERBS = verbs.read()
INCLUDE = ROOT / "include"
C_HEADERS = [INCLUDE / "hocket" / "c.h", *sorted((INCLUDE / "hocket").glob("c_*.h"))]


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)


def compiled(command, source):
    ran = subprocess.run([*command, source], capture_output=True, text=True, timeout=300)
    return ran.stdout + ran.stderr if ran.returncode else ""


def test_the_page_is_made_of_the_list():
    text = verbs.PAGE.read_text()
    assert verbs.page(VERBS, text) == text, "run tools/docs/verbs.py --write"


def test_each_name_is_one_of_cpp(tmp_path):
    """A using-declaration looks up one name, overloaded or not."""
    if shutil.which("g++") is None:
        pytest.skip("no C++ compiler")
    lines = ["#include <hocket/hocket.h>"]
    of_class = {}
    for name in sorted(VERBS.names("cpp")):
        owner, _, member = name.rpartition("::")
        if owner:
            of_class.setdefault(owner, []).append(member)
        else:
            lines.append(f"namespace found {{ using hocket::{name}; }}")
    for owner, members in of_class.items():
        lines.append(f"struct Found{owner} : hocket::{owner} {{")
        lines += [f"  using hocket::{owner}::{member.replace('()', ' ()')};" for member in members]
        lines.append("};")
    source = tmp_path / "names.cc"
    source.write_text("\n".join(lines).replace("operator ()", "operator()"))
    command = ["g++", "-std=c++20", "-fsyntax-only", f"-I{INCLUDE}"]
    assert compiled(command, source) == ""


def test_each_name_is_one_of_c(tmp_path):
    if shutil.which("gcc") is None:
        pytest.skip("no C compiler")
    names = sorted(VERBS.names("c"))
    assert len(names) > 100
    calls = "\n".join(f"  found = (void (*)(void)){name};" for name in names)
    source = tmp_path / "names.c"
    source.write_text(f"#include <hocket/c.h>\nvoid (*found)(void);\nvoid find(void) {{\n{calls}\n}}\n")
    command = ["gcc", "-std=c11", "-fsyntax-only", "-Werror=implicit-function-declaration"]
    assert compiled([*command, f"-I{INCLUDE}"], source) == ""


def test_each_name_is_one_of_fortran(tmp_path):
    if shutil.which("gfortran") is None:
        pytest.skip("no Fortran compiler")
    names = sorted(VERBS.names("c"))
    source = tmp_path / "names.f90"
    uses = "\n".join(f"  use hocket, only: {name}" for name in names)
    source.write_text(f"program names\n{uses}\nend program\n")
    command = ["gfortran", "-fsyntax-only", f"-J{tmp_path}", str(fortran_module(tmp_path))]
    assert compiled(command, source) == ""


def test_each_name_is_one_of_python():
    missing = []
    for name in sorted(VERBS.names("python")):
        found = hocket
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is None:
            missing.append(name)
    assert missing == []


def test_no_call_of_cpp_is_left_out():
    header = without_comments((INCLUDE / "hocket" / "communicator.h").read_text())
    header = re.sub(r"\[\[.*?\]\]", "", header, flags=re.DOTALL)
    members = header[header.index("Communicator {\n") : header.index(" private:\n  template")]
    declared = set(re.findall(r"^  [\w: ,<>&.]*?(?<!::)\b([a-z]\w*)\(", members, re.MULTILINE))
    known = {name.rpartition("::")[2] for name in VERBS.names("cpp")} | VERBS.aside["cpp"]
    assert "all_reduce" in declared and len(declared) > 60
    assert declared - known == set()


def test_no_function_of_c_is_left_out():
    header = without_comments("\n".join(path.read_text() for path in C_HEADERS))
    declared = set(re.findall(r"\b(hocket_\w+)\(", header))
    assert declared - VERBS.names("c") - VERBS.aside["c"] == set()


def test_no_call_of_python_is_left_out():
    public = {name for name in vars(hocket.Communicator) if not name.startswith("_")}
    known = {name.rpartition(".")[2] for name in VERBS.names("python")} | VERBS.aside["python"]
    assert public - known == set()


def test_calls_are_found_by_the_words_that_people_search_for():
    """The site's search looks into the pages and the docstrings."""
    assert "halo exchange" in hocket.Grid.neighbour_exchange.__doc__
    for name in ("gather_v", "scatter_v", "all_gather_v"):
        assert "uneven" in getattr(hocket.Communicator, name).__doc__, name
    page = verbs.PAGE.read_text()
    for verb, words in (("neighbour_exchange", "halo exchange"), ("gather_v", "uneven size")):
        assert re.search(rf"^\| {verb} \|.*{words}", page, re.MULTILINE), verb
