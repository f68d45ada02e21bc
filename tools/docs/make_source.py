#!/usr/bin/env python3
"""make_source.py SOURCE COMMAND: writes the site's documents and references as Sphinx reads them.

SOURCE becomes a copy of the repository's folders, so that the links between documents stay valid.
COMMAND is the path of `hocket`.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ROOT / "include" / "hocket"
# These headers get no page: one only includes the others, and one has only internal details.
WITHOUT_A_PAGE = {"hocket.h", "cplusplus.h"}
GUIDE = [
    (
        "Start here",
        ["README", "docs/installing"]
        + [f"docs/{name}" for name in ("concepts", "reductions", "messages", "verbs", "starting")]
        + [f"docs/{name}" for name in ("notebooks", "many_hosts", "gpu")],
    ),
    (
        "By task",
        ["docs/farm", "docs/checkpoint", "docs/profiling", "docs/binding", "docs/moving/mpirun"],
    ),
    (
        "When something goes wrong",
        [f"docs/{name}" for name in ("debugging", "errors", "failure", "live", "testing", "traces")],
    ),
    (
        "For some programs",
        ["docs/device-pool", "docs/distributions", "docs/fft-and-matmul", "docs/c-api", "docs/moving/torch.distributed"]
        + [f"docs/moving/{name}" for name in ("mpi", "cupyx", "bagua", "tike", "nvmath")],
    ),
    ("Before you rely on it", ["docs/performance", "docs/scaling", "docs/reliability", "docs/security", "docs/versions"]),
    (
        "Reference",
        ["reference/python", "reference/command", "reference/cpp/index", "reference/examples"],
    ),
]
INSIDE = ["docs/architecture", "CONTRIBUTING", "CHANGELOG", "SUPPORT", "SECURITY", "CODE_OF_CONDUCT",
          "THIRD-PARTY-NOTICES"]
CSS = """
.content { width: 52em; }
.highlight-text pre { font-size: 0.75em; }  /* what the command prints, which has wide lines */
.sidebar-brand-text { font-size: 1.6rem; }
article table { font-size: 0.9em; }
article img { max-width: 100%; }
"""


def copy_documents(source):
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*")]:
        if path.is_file():
            target = source / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    # Links to the folder examples go to the page of examples, because a folder has no page.
    for path in source.rglob("*.md"):
        text = path.read_text()
        up = "../" * (len(path.relative_to(source).parts) - 1)
        text = re.sub(r"\]\((?:\.\./)*examples\)", f"]({up}reference/examples.md)", text)
        path.write_text(text)


def toctree(caption, pages, depth=1):
    lines = "\n".join(f"/{page}" for page in pages)
    head = f":caption: {caption}\n" if caption else ""
    return f"```{{toctree}}\n{head}:maxdepth: {depth}\n:hidden:\n\n{lines}\n```\n"


def write_decisions(source):
    folder = source / "docs" / "decisions"
    pages = [f"docs/decisions/{path.stem}" for path in sorted(folder.glob("[0-9]*.md"))]
    with (folder / "index.md").open("a") as index:
        index.write("\n" + toctree("", pages))


def others(source, listed):
    """Return the documents that are not in `listed`. They come last in the table of contents."""
    found = sorted((source / "docs").rglob("*.md"))
    names = [path.relative_to(source).with_suffix("").as_posix() for path in found]
    return [name for name in names if name not in listed and not re.match(r".*/\d+-", name)]


def write_index(source):
    listed = [page for _, pages in GUIDE for page in pages] + INSIDE
    readme = (source / "README.md").read_text()
    # The README becomes the first page. Its links already start at the top folder.
    parts = [toctree(*group) for group in GUIDE]
    parts.append(toctree("How it is made", INSIDE + others(source, listed)))
    (source / "index.md").write_text(readme + "\n" + "\n".join(parts).replace("/README\n", ""))
    (source / "README.md").unlink()
    for path in source.rglob("*.md"):
        text = path.read_text()
        path.write_text(re.sub(r"\]\(((?:\.\./)*)README\.md", r"](\1index.md", text))


def help_of(command, *words):
    return subprocess.run(
        [command, *words, "--help"], capture_output=True, text=True, check=True
    ).stdout.strip()


def write_command(source, command):
    general = help_of(command)
    names = re.findall(r"^  (\w+)\s{2,}", general.split("Subcommands:")[1], re.M)
    parts = [
        "# The command\n",
        "What `hocket --help` says, and `hocket COMMAND --help` of each command.\n",
        f"```text\n{general}\n```\n",
    ]
    for name in names:
        parts.append(f"## hocket {name}\n\n```text\n{help_of(command, name)}\n```\n")
    parts.append("## Variables of the environment\n")
    listed = subprocess.run([command, "doctor", "--env"], capture_output=True, text=True, check=True)
    parts.append(f"What `hocket doctor --env` says:\n```text\n{listed.stdout.strip()}\n```\n")
    (source / "reference" / "command.md").write_text("\n".join(parts))


def write_cpp(source):
    folder = source / "reference" / "cpp"
    folder.mkdir(parents=True)
    headers = sorted(p for p in HEADERS.glob("*.h") if p.name not in WITHOUT_A_PAGE)
    rows, pages = [], []
    for path in headers:
        text = path.read_text()
        first = re.match(r"(?:// (.*?)$|/\* (.*?)$)", text, re.M)
        title = f"hocket/{path.name}"
        rows.append(f"| [`{title}`]({path.stem}.md) | {(first[1] or first[2]).rstrip(':')} |")
        pages.append(f"reference/cpp/{path.stem}")
        (folder / f"{path.stem}.md").write_text(
            f"# {title}\n\n```{{eval-rst}}\n.. doxygenfile:: {path.name}\n```\n"
        )
    (folder / "index.md").write_text(
        "# C++ and C\n\nA page for each header; `hocket/hocket.h` includes all but `hocket/mpi.h` and "
        "`hocket/c.h`,\nwhich is the interface for C. The comments are the headers' own.\n\n"
        "| header | what it has |\n|---|---|\n" + "\n".join(rows) + "\n\n" + toctree("", pages)
    )


PYTHON = """# Python

What `help(hocket)` says. Arrays are those of NumPy, CuPy, PyTorch, JAX and whatever speaks DLPack;
[Concepts](../docs/concepts.md) explains the calls.

```{eval-rst}
.. automodule:: hocket
   :no-members:
```

"""
MODULES = {
    "Joining": ["init", "spawn", "run_threads", "connect_store", "Cluster", "load_ipython_extension"],
    "Calls": ["Communicator", "Work", "Prepared", "wait_all", "wait_any", "wait_some", "Operator", "Grid"],
    "Messages": ["Received", "Envelope", "ANY_SOURCE", "ANY_TAG", "NULL_RANK"],
    "Memory and GPUs": ["SymmetricMemory", "GpuArray", "Context", "DevicePool", "PoolWorker"],
    "Meeting": ["Store", "StoreServer", "Bootstrap", "MPIBootstrap", "TorchBootstrap"],
    "What became of ranks": ["RankCall", "Status", "hand_over", "StopRequest"],
}
# Modules with a heading of their own on the page. hocket.torch and hocket.compat have other pages.
OF_THEIR_OWN = {
    "Errors": "errors",
    "Fourier transforms": "fft",
    "Products of matrices": "linalg",
    "Distributions": "distribution",
    "Sparse matrices": "sparse",
    "Tasks": "futures",
    "MPI": "mpi",
    "Streaming": "stream",
    "Tests": "testing",
}


def require_all_public_names():
    """Fail if the reference misses a public name of hocket.

    Without this check only a reader would notice.
    """
    import hocket

    listed = {name for names in MODULES.values() for name in names} | set(hocket.errors.__all__)
    modules = {path.stem for path in Path(hocket.__file__).parent.glob("[a-z]*.py")} | {"testing"}
    parts = {"bootstrap", "cluster", "grid", "operators", "pool"}  # their names are hocket's own
    missing = set(hocket.__all__) - listed | modules - parts - set(OF_THEIR_OWN.values())
    if missing:
        sys.exit(f"docs: not in the reference (tools/docs/make_source.py): {sorted(missing)}")


def directive(name):
    if name.isupper():
        return f".. autodata:: hocket.{name}\n   :no-value:\n"
    if name[0].islower():
        return f".. autofunction:: hocket.{name}\n"
    return f".. autoclass:: hocket.{name}\n   :members:\n   :inherited-members: object, tuple\n"


def write_python(source):
    require_all_public_names()
    parts = [PYTHON]
    for heading, names in MODULES.items():
        directives = "\n".join(directive(name) for name in names)
        parts.append(f"## {heading}\n\n```{{eval-rst}}\n{directives}\n```\n")
    for heading, module in OF_THEIR_OWN.items():
        parts.append(f"## {heading}\n\n```{{eval-rst}}\n.. automodule:: hocket.{module}\n   :members:\n```\n")
    (source / "reference" / "python.md").write_text("\n".join(parts))


def write_examples(source):
    parts = ["# Examples\n\nA program for each main idea. The tests run them all.\n"]
    kinds = {".cc": "cpp", ".c": "c", ".py": "python", ".f90": "fortran"}
    for path in sorted((ROOT / "examples").rglob("*")):
        if path.suffix in kinds:
            name = path.relative_to(ROOT).as_posix()
            parts.append(f"## {name}\n\n```{kinds[path.suffix]}\n{path.read_text().rstrip()}\n```\n")
    (source / "reference" / "examples.md").write_text("\n".join(parts))


def main():
    source, command = Path(sys.argv[1]), sys.argv[2]
    shutil.rmtree(source, ignore_errors=True)
    (source / "reference").mkdir(parents=True)
    (source / "_static").mkdir()
    (source / "_static" / "hocket.css").write_text(CSS)
    copy_documents(source)
    write_command(source, command)
    write_cpp(source)
    write_python(source)
    write_examples(source)
    write_decisions(source)
    write_index(source)


if __name__ == "__main__":
    main()
