"""README and docs/ hold what they say.

Every block of Python in them is a program that runs on two ranks, every block of C++ with a `main`
likewise; blocks of C++ without one are statements, run in turn in one program a document. What
stands before a block says more about it:

    <!-- prints -->        the text that the program above it prints
    <!-- quote: FILE -->   lines of FILE, as they stand there, or in a comment there
    <!-- needs: MODULE --> a program for machines that have the Python package
"""

import importlib.util
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import pytest
from helpers import ROOT, run_job

import hocket
from hocket._command import find_command

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
BLOCK = re.compile(
    r"^(?:<!-- (?P<note>[^\n]*) -->\n)?```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.M | re.S
)


class Block(NamedTuple):
    document: Path
    line: int
    kind: str
    note: str
    text: str

    @property
    def name(self):
        return f"{self.document.name}:{self.line}"


def line_of(text, position):
    return text[:position].count("\n") + 1


def blocks_of(document):
    text = document.read_text()
    return [
        Block(document, line_of(text, m.start("kind")), m["kind"], m["note"] or "", m["text"])
        for m in BLOCK.finditer(text)
    ]


BLOCKS = [block for document in DOCUMENTS for block in blocks_of(document)]
QUOTES = [block for block in BLOCKS if block.note.startswith("quote: ")]
PYTHON = [block for block in BLOCKS if block.kind == "python" and block not in QUOTES]
CPP = [block for block in BLOCKS if block.kind == "cpp" and block not in QUOTES]


def named(blocks):
    return pytest.mark.parametrize("block", blocks, ids=lambda block: block.name)


def printed_text(block):
    """What the document says that this program prints, or None."""
    for following in BLOCKS[BLOCKS.index(block) + 1 :][:1]:
        if following.document == block.document and following.note == "prints":
            return following.text
    return None


def essence(output):
    """Without what differs from run to run, and without line breaks."""
    output = re.sub(r"\(pid \d+\)", "(pid N)", output)
    output = re.sub(r"\b[\d.]+ s\b", "T s", output)
    return output.split()


def run_and_compare(block, *program):
    job = run_job(2, *program)
    assert job.returncode == 0, f"{block.name}:\n{job.stdout}"
    expected = printed_text(block)
    if expected is not None:
        prefix = "" if expected.startswith("[") else r"^\[\d+\] "
        shown = re.sub(prefix, "", job.stdout, flags=re.M) if prefix else job.stdout
        assert essence(shown) == essence(expected), f"{block.name} prints:\n{shown}"


@named(PYTHON)
def test_python(block, tmp_path):
    if block.note.startswith("needs: "):
        pytest.importorskip(block.note.removeprefix("needs: "))
    program = tmp_path / "program.py"
    program.write_text(block.text)
    run_and_compare(block, program)


def library_flags():
    """How to compile and link against the library that is tested; None where it cannot be told."""
    build = Path(os.path.realpath(find_command())).parent.parent
    if not (build / "lib" / "libhocket.so").exists():
        return None
    library = build / "lib"
    return [f"-I{ROOT / 'include'}", f"-L{library}", "-lhocket", f"-Wl,-rpath,{library}"]


def compile_and_run(block, source, folder):
    flags = library_flags()
    if flags is None:
        pytest.skip("no shared library stands beside the command")
    file, program = folder / "program.cc", folder / "program"
    file.write_text(source)
    compiler = [os.environ.get("CXX", "c++"), "-std=c++20", "-Wall", "-Wextra", "-Werror"]
    command = [*compiler, "-Wno-missing-field-initializers", str(file), "-o", str(program), *flags]
    made = subprocess.run(command, capture_output=True, text=True, timeout=50)
    assert made.returncode == 0, f"{block.name}:\n{made.stderr}"
    run_and_compare(block, *RUNS_PROGRAM, program)


# run_job starts Python; this one becomes the program.
RUNS_PROGRAM = ["-c", "import os, sys; os.execv(sys.argv[1], sys.argv[1:])"]


@named([block for block in CPP if "int main(" in block.text])
def test_cpp_program(block, tmp_path):
    compile_and_run(block, block.text, tmp_path)


@pytest.mark.parametrize(
    "document",
    [d for d in DOCUMENTS if any(b.document == d and "int main(" not in b.text for b in CPP)],
    ids=lambda document: document.name,
)
def test_cpp_statements(document, tmp_path):
    blocks = [b for b in CPP if b.document == document and "int main(" not in b.text]
    parts = [
        f'  {{\n#line {b.line + 1} "{document.name}"\n{textwrap.indent(b.text, "    ")}  }}\n'
        for b in blocks
    ]
    source = (
        "#include <hocket/hocket.h>\n#include <cstdio>\n#include <vector>\n"
        "using namespace std::chrono_literals;\n"
        "int main() {\n  hocket::World world = hocket::init();\n"
        "  hocket::Communicator& comm = world.communicator();\n" + "".join(parts) + "}\n"
    )
    compile_and_run(blocks[0], source, tmp_path)


@named(QUOTES)
def test_quotes(block):
    file = ROOT / block.note.removeprefix("quote: ")
    lines, quoted = (
        [re.sub(r"^//\s+", "", line.strip()) for line in text.splitlines()]
        for text in (file.read_text(), block.text)
    )
    found = any(lines[i : i + len(quoted)] == quoted for i in range(len(lines)))
    assert found, f"{block.name} is no longer in {file.relative_to(ROOT)}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_links(document):
    text = re.sub(r"```.*?```", "", document.read_text(), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"\w+://", target):
            continue
        path, _, anchor = target.partition("#")
        file = (document.parent / path) if path else document
        assert file.exists(), f"{document.name} links to {target}, which is not there"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text(), re.M)
            slugs = [re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings]
            assert anchor in slugs, f"{document.name} links to {target}; headings are {slugs}"


def tool(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


PROSE = tool(ROOT / "tools" / "check_prose.py")


@pytest.mark.parametrize("page", PROSE.default_files(), ids=lambda page: page.name)
def test_reads_well(page):
    findings = PROSE.check(page)
    assert not findings, "\n".join(f"{page.name}:{line}: {what}" for line, what in findings)


def test_prose_is_found_wanting(tmp_path):
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    long = " ".join(["Words", *["word"] * 35])
    page.write_text(f"# A title\n\nShort. {long}. Short.\n\n```sh\n{long}\n```\n- {long}\n  end\n")
    found = [(line, what.split(":")[0]) for line, what in PROSE.check(page)]
    assert (3, "36 words in a sentence") in found and (8, "37 words in a sentence") in found
    assert len(found) == 3 and "where to go" in PROSE.check(page)[-1].what.lower()
    page.write_text("# A title\n\nWhat it is for.\n\n## Where to go\n[Here](page.md).\n")
    assert not PROSE.check(page)


def test_picture_of_speed_is_of_the_tables():
    picture = ROOT / "tools" / "docs" / "speed_picture.py"
    subprocess.run([sys.executable, picture, "--check"], check=True, timeout=30)


def test_every_page_has_its_place_in_the_site(tmp_path):
    """tools/docs.sh needs minutes and Doxygen; what it gives to Sphinx is made in a moment."""
    maker = ROOT / "tools" / "docs" / "make_source.py"
    subprocess.run([sys.executable, maker, tmp_path, find_command()], check=True, timeout=50)
    pages = {p.relative_to(tmp_path).with_suffix("").as_posix() for p in tmp_path.rglob("*.md")}
    listed = set()
    for page in tmp_path.rglob("*.md"):
        for tree in re.findall(r"```{toctree}\n(.*?)```", page.read_text(), re.S):
            listed.update(line[1:] for line in tree.splitlines() if line.startswith("/"))
    assert pages - listed == {"index"} and listed <= pages
    headers = {p.stem for p in (ROOT / "include" / "hocket").glob("*.h")} - {"hocket", "cplusplus"}
    assert {f"reference/cpp/{header}" for header in headers} <= pages
    assert "## hocket bench" in (tmp_path / "reference" / "command.md").read_text()


def test_something_is_tested():
    assert PYTHON and CPP and QUOTES and hocket.__version__
