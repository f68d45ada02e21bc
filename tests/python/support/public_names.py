"""The public names and signatures of nvmath.distributed, read from its source and importing nothing of it.

A table has, by module and name, "class", "function" or "value" and what a caller may rely on: the parameters,
in Python's own notation, and a class's public members. The tables beside the tests of faces are made so::

    python tests/python/support/public_names.py FOLDER > tests/python/faces/nvmath_names_VERSION.json

where FOLDER has an installed or unpacked nvmath-python in it.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any, Optional

#: The package whose names are read.
PACKAGE = "nvmath.distributed"


class Source:
    """The modules of a folder, parsed once each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.parsed: dict[str, Module] = {}

    def module(self, name: str) -> Optional[Module]:
        """A module, read; None if it is not Python's or lies elsewhere."""
        if name not in self.parsed:
            base = self.folder.joinpath(*name.split("."))
            file = next((f for f in (base / "__init__.py", base.with_suffix(".py")) if f.exists()), None)
            if file is None:
                return None
            self.parsed[name] = Module(self, name, ast.parse(file.read_text()), file.stem == "__init__")
        return self.parsed[name]

    def public_modules(self, package: str) -> list[str]:
        """The package, the packages in it, and the modules that lie directly in it."""
        folder = self.folder.joinpath(*package.split("."))
        inner = [p.parent for p in folder.rglob("__init__.py")]
        files = [*inner, *(f.with_suffix("") for f in folder.glob("*.py") if f.stem != "__init__")]
        names = {".".join(f.relative_to(self.folder).parts) for f in files}
        return sorted(name for name in names if "._" not in name)


class Module:
    """The names of a module. Imports by name are followed when they are asked for, for they form circles."""

    def __init__(self, source: Source, name: str, tree: ast.Module, is_package: bool) -> None:
        self.source, self.name, self.is_package = source, name, is_package
        self.defined: dict[str, Optional[ast.AST]] = {}  # None for a value
        self.imported: dict[str, tuple[str, str]] = {}  # the module, and the name in it
        self.exported: list[str] = []  # by __all__, by a star, or as itself
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                self.defined[node.name] = node
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.defined[node.targets[0].id] = None
                if node.targets[0].id == "__all__":
                    self.exported += ast.literal_eval(node.value)
            elif isinstance(node, ast.ImportFrom):
                self._import(node)

    def _import(self, node: ast.ImportFrom) -> None:
        above = self.name.split(".")
        above = above[: len(above) - node.level + self.is_package] if node.level else []
        source = ".".join([*above, *(node.module or "").split(".")]).rstrip(".")
        if node.names[0].name == "*":
            theirs = self.source.module(source)
            for name in theirs.exported if theirs else []:
                self.imported[name] = source, name
                self.exported.append(name)
            return
        for alias in node.names:
            self.imported[alias.asname or alias.name] = source, alias.name
            if alias.asname == alias.name:
                self.exported.append(alias.name)

    def public(self) -> list[str]:
        """What is exported, and the functions and classes that are defined here."""
        here = [name for name, node in self.defined.items() if node is not None]
        return sorted({name for name in [*self.exported, *here] if name[0] != "_"})

    def definition(self, name: str) -> Optional[ast.AST]:
        """Of a function or a class; None for values, modules, and what Python's source does not show."""
        if name in self.defined or name not in self.imported:
            return self.defined.get(name)
        where, there = self.imported[name]
        theirs = self.source.module(where)
        return None if theirs in (None, self) else theirs.definition(there)


def parameters(node: ast.FunctionDef) -> str:
    """The parameters without their types, in Python's notation."""
    bare = ast.parse(f"def f({ast.unparse(node.args)}): pass").body[0]
    assert isinstance(bare, ast.FunctionDef)
    args = bare.args
    for group in (args.posonlyargs, args.args, args.kwonlyargs, [args.vararg], [args.kwarg]):
        for arg in group:
            if arg is not None:
                arg.annotation = None
    return f"({ast.unparse(args)})"


def _decorators(node: ast.FunctionDef) -> set[str]:
    return {ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list}


def of_class(node: ast.ClassDef) -> dict[str, Any]:
    """The public members of a class: methods' parameters, "property", "class" or "value"."""
    members: dict[str, Any] = {}
    fields: list[str] = []
    for part in node.body:
        if isinstance(part, ast.FunctionDef):
            if part.name == "__init__" or part.name[0] != "_":
                is_property = _decorators(part) & {"property", "setter"}
                members[part.name] = "property" if is_property else parameters(part)
        elif isinstance(part, ast.ClassDef):
            members[part.name] = "class"
        elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            members[part.target.id] = "value"
            default = "" if part.value is None else f"={ast.unparse(part.value)}"
            fields.append(part.target.id + default)
        elif isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name):
            members[part.targets[0].id] = "value"
    if any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list):
        members["__init__"] = f"({', '.join(['self', *fields])})"
    return {name: what for name, what in members.items() if name == "__init__" or name[0] != "_"}


def read(folder: Path, package: str = PACKAGE) -> dict[str, dict[str, Any]]:
    """The table of a package that lies in `folder`."""
    source = Source(folder)
    table: dict[str, dict[str, Any]] = {}
    for name in source.public_modules(package):
        module = source.module(name)
        assert module is not None
        table[name] = {public: _entry(module.definition(public)) for public in module.public()}
    return table


def _entry(node: Optional[ast.AST]) -> Any:
    if isinstance(node, ast.FunctionDef):
        return parameters(node)
    return of_class(node) if isinstance(node, ast.ClassDef) else "value"


if __name__ == "__main__":
    print(json.dumps(read(Path(sys.argv[1])), indent=1, sort_keys=True))
