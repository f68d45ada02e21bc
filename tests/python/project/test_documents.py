"""README and docs/ hold what they say.

Every block of Python in them is a program that runs on two ranks. So is every block of C++ with a
`main`. Blocks of C++ without one are statements, run in turn in one program for each document.
Programs in C and Fortran run too, and so do statements of C. Options of commands, files and
variables that are named must exist. A comment before a block says more about it:

    <!-- prints -->        the text that the program above it prints
    <!-- quote: FILE -->   lines of FILE, as they stand there, or in a comment there
    <!-- needs: MODULE --> a program for machines that have the Python package
"""

import functools
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

import pytest
from helpers import ROOT, fortran_module
from processes import run_job

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
    """Returns the output that the document gives for this program, or None."""
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
    """Returns the command to compile and link against the tested library; None if it is unknown."""
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


def compiled(block, tmp_path, suffix, *command):
    flags = library_flags()
    if flags is None or shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]}, or a shared library beside the command, is missing")
    file, program = tmp_path / f"program{suffix}", tmp_path / "program"
    text = block.text
    if "int main(" not in text and suffix == ".c":
        text = f"#include <hocket/c.h>\nint main(void) {{\n{text}(void)options;\nreturn 0;\n}}\n"
    file.write_text(text)
    made = subprocess.run([*command, str(file), "-o", str(program), *flags], cwd=tmp_path,
                          capture_output=True, text=True, timeout=50)
    assert made.returncode == 0, f"{block.name}:\n{made.stderr}"
    run_and_compare(block, *RUNS_PROGRAM, program)


@named([block for block in BLOCKS if block.kind == "c"])
def test_c(block, tmp_path):
    compiled(block, tmp_path, ".c", "cc", "-std=c11", "-Wall", "-Wextra", "-Werror")


@named([block for block in BLOCKS if block.kind == "fortran"])
def test_fortran(block, tmp_path):
    compiled(block, tmp_path, ".f90", "gfortran", str(fortran_module(tmp_path)))


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


# --- What is named is there -----------------------------------------------------------------------


def without_blocks(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


PAGES = [document for document in DOCUMENTS if document.parent.name != "notes"]  # those tell of the past


@pytest.mark.parametrize("document", PAGES, ids=lambda document: document.name)
def test_files_that_are_named_are_there(document):
    text = document.read_text()
    folders = "src|tests|tools|bench|docs|python|include|examples|packaging|cmake"
    named = set(re.findall(rf"(?<![\w/.])((?:{folders})/[\w./-]*\w)", text))
    if document.parent.name == "moving":  # these speak of other packages' files, too
        named = {name for name in named if not name.startswith("tests/") or (ROOT / name).exists()}
    for name in sorted(named):
        if "NAME" not in name:
            assert (ROOT / name).exists(), f"{document.name} names {name}, which is not there"


def text_of_help(*words):
    command = [find_command(), *words, "--help"]
    return subprocess.run(command, capture_output=True, text=True, timeout=50).stdout


@functools.cache
def options_of(name):
    """Returns the help with the options of a command of hocket, or of a tool here; None if it is
    neither.
    """
    first, _, subcommand = name.partition(" ")
    if first == "hocket":
        if subcommand == "demo":
            return (ROOT / "python" / "hocket" / "_jobs" / "demo.py").read_text()
        return text_of_help(subcommand) if f"\n  {subcommand} " in text_of_help() else None
    if not (ROOT / first).is_file():
        return None
    text = (ROOT / first).read_text()
    imported = re.findall(r"^\s*(?:import|from) (\w+)", text, re.M)
    parts = [(ROOT / first).parent / f"{part}.py" for part in imported]
    return text + "".join(part.read_text() for part in parts if part.is_file())


COMMAND = re.compile(
    r"(?:^|[\s`(;$/])(hocket [a-z]+|tools/[\w./-]+|bench/[\w.]+\.py|\./demo\.sh|\./test\.sh)"
    r"((?: (?!--? )[^\s`|&;#)]+)*)"
)


@pytest.mark.parametrize("document", PAGES, ids=lambda document: document.name)
def test_options_that_are_named_are_there(document):
    for line in document.read_text().splitlines():
        for command, rest in COMMAND.findall(line):
            known = options_of(command)
            if known is None:
                continue
            arguments = rest.split()
            if "--" in arguments:
                arguments = arguments[: arguments.index("--")]
            for option in arguments:
                name = option.split("=")[0]
                if re.fullmatch(r"--[a-z][\w-]+", name):
                    assert re.search(rf"{name}\b", known), f"{document.name}: {command} {name}"


@functools.cache
def variables():
    said = subprocess.run([find_command(), "doctor", "--env"], capture_output=True, text=True,
                          check=True, timeout=50).stdout
    return set(re.findall(r"^(HOCKET_\w+)", said, re.M))


@pytest.mark.parametrize("document", PAGES, ids=lambda document: document.name)
def test_variables_that_are_named_are_there(document):
    headers = [ROOT / "include" / "hocket" / name for name in ("c.h", "c_membership.h", "c_calls.h", "c_grid.h", "c_operators.h")]
    of_builds = [ROOT / "CMakeLists.txt", *ROOT.glob("cmake/*"), *ROOT.glob("tools/**/*.sh")]
    texts = "".join(path.read_text() for path in [*headers, *of_builds])
    known = variables() | set(re.findall(r"\bHOCKET_\w+", texts))
    named = set(re.findall(r"\bHOCKET_[A-Z0-9_]*[A-Z0-9]\b", document.read_text()))
    assert named <= known, f"{document.name} names {sorted(named - known)}"


def layers_of_sources():
    source = (ROOT / "src" / "CMakeLists.txt").read_text()
    layers = re.search(r"foreach\(layer ([a-z].*?)\)", source, re.S)[1].split()
    return sorted([*layers, "interfaces/cli", "interfaces/mpi"])


def test_the_page_of_architecture_has_all_layers():
    page = (ROOT / "docs" / "architecture.md").read_text()
    (listed,) = re.findall(r"^## Wings and layers\n.*?```text\n(.*?)```", page, re.M | re.S)
    wing, found = "", []
    for indent, name, is_wing in re.findall(r"^((?:  )?)([a-z]+)(/?) {2,}", listed, re.M):
        if is_wing:
            wing = name
        else:
            found.append(f"{wing}/{name}" if indent else name)
    assert sorted(found) == layers_of_sources()


def test_the_page_of_each_wing_has_its_layers():
    wings = {}
    for layer in layers_of_sources():
        wing, _, name = layer.rpartition("/")
        if wing:
            wings.setdefault(wing, []).append(name)
    for wing, names in wings.items():
        table = re.findall(r"^\| (`.*?) \|", (ROOT / "src" / wing / "README.md").read_text(), re.M)
        assert sorted(re.findall(r"`(\w+)`", " ".join(table))) == names, wing


# Symbols of tables, constants and compilers that are writable but are no state.
NO_STATE = re.compile(r"vtable|typeinfo|guard variable|DW\.ref|VTT|HighwayDispatchTable|::k[A-Z]\w*$")


def state_of_library():
    """Names of what outlives calls and can change, as the libraries' symbols have them."""
    flags = library_flags()
    if flags is None or shutil.which("nm") is None:
        pytest.skip("nm, or a shared library beside the command, is missing")
    folder = Path(flags[1][2:])
    found = set()
    for library in [folder / "libhocket.so", *folder.glob("libhocket_mpi_*.so")]:
        said = subprocess.run(["nm", "-C", "--defined-only", str(library)], capture_output=True,
                              text=True, timeout=50).stdout
        for line in said.splitlines():
            kind, name = line.split(maxsplit=2)[1:]
            if kind in "bBdD" and "hocket::" in name and not NO_STATE.search(name):
                found.add(name)
    return found


def plain_name(symbol):
    """Without arguments and namespaces that have no name: planner::mutex."""
    symbol = symbol.replace("(anonymous namespace)::", "").replace(" const", "")
    while (shorter := re.sub(r"\([^()]*\)|<[^<>]*>|\{[^{}]*\}", "", symbol)) != symbol:
        symbol = shorter
    return symbol


def test_all_state_of_a_process_is_named():
    page = (ROOT / "docs" / "architecture.md").read_text()
    (section,) = re.findall(r"^## The state of a process\n(.*?)^## ", page, re.M | re.S)
    rows = re.findall(r"^\| ([^|]*) \| `([\w/.]+)` \|", section, re.M)
    named = [(name, file) for names, file in rows for name in re.findall(r"`([^`]+)`", names)]
    for name, file in named:
        last = name.split("::")[-1]
        assert re.search(rf"\b{last}\b", (ROOT / file).read_text()), f"{file} has no {name}"
    for symbol in sorted(state_of_library()):
        assert any(f"::{plain_name(symbol)}".endswith(f"::{name}") for name, _ in named), (
            f"{plain_name(symbol)} can change and outlives calls: docs/architecture.md has no reason")
    # The Python package has no symbols.
    static = re.compile(
        r"^\s*static (?:thread_local )?(?!const\b|constexpr\b|PyObject\* const)[^()=]*?"
        r"(\w+)(?:\{.*\})?(?: = .*)?;",
        re.M,
    )
    for path in sorted((ROOT / "python" / "src").glob("*.cc")):
        for name in static.findall(path.read_text()):
            place = (name, path.relative_to(ROOT).as_posix())
            assert place in named, f"{place} is not in docs/architecture.md"


def tool(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


PROSE = tool(ROOT / "tools" / "check" / "prose.py")


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
    """tools/docs/build.sh needs minutes and Doxygen; what it gives to Sphinx is made in a moment."""
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
