"""The names and signatures of nvmath.distributed, release by release, are the face's too."""

import importlib
import importlib.metadata
import importlib.util
import inspect
import json
from pathlib import Path

import public_names
import pytest

from hocket.compat import nvmath_distributed as nvd
from hocket.compat._finder import FACES
from hocket.compat.nvmath_distributed.linalg._refused import REFUSED

HERE = Path(__file__).parent
MODULES = FACES["nvmath.distributed"]

#: Where a release's own default differs from the newest one's, which the face has.
OTHER_DEFAULTS = {("0.9.0", "MatmulOptions.__init__", "inplace")}
#: Where a release has another word for a parameter; the face takes both.
OTHER_WORDS = {("0.9.0", "FFTOptions.__init__", "reshape"): "redistribute"}


def tables():
    """By release: from its source where it is installed, and from the tables that lie here."""
    found = {
        file.stem.removeprefix("nvmath_names_"): json.loads(file.read_text())
        for file in sorted(HERE.glob("nvmath_names_*.json"))
    }
    spec = importlib.util.find_spec("nvmath")
    if spec is not None and spec.submodule_search_locations:
        version = importlib.metadata.version("nvmath-python")
        folder = Path(list(spec.submodule_search_locations)[0]).parent
        found[f"{version} installed"] = public_names.read(folder)
    return found


def signature_of(text):
    """The signature that a table has as text."""
    scope = {}
    exec(f"def f{text}: pass", scope)
    return inspect.signature(scope["f"])


def differences(release, name, wanted, got):
    """Says where a face's signature is not the original's."""
    theirs, ours = wanted.parameters.values(), got.parameters.values()
    renamed = []
    for parameter in theirs:
        word = OTHER_WORDS.get((release.split()[0], name, parameter.name), parameter.name)
        parameter = parameter.replace(name=word)
        if (release.split()[0], name, word) in OTHER_DEFAULTS and word in got.parameters:
            parameter = parameter.replace(default=got.parameters[word].default)
        renamed.append(parameter)
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in ours]

    def in_order(parameters):  # of those that are given by name alone the order is nothing
        by_name = [p for p in parameters if p.kind == p.KEYWORD_ONLY]
        return [p for p in parameters if p not in by_name], sorted(by_name, key=lambda p: p.name)

    if in_order(renamed) != in_order(bare):
        yield f"{name}{wanted} is {name}{got} in the face"


def differences_of_class(release, name, members, face):
    """Says where a face's class lacks a member, or has it otherwise."""
    for member, what in members.items():
        full = f"{name}.{member}"
        if what == "value" and member in getattr(face, "__dataclass_fields__", {}):
            continue
        if not hasattr(face, member):
            yield f"{full} is missing"
        elif what == "property":
            if not isinstance(inspect.getattr_static(face, member), property):
                yield f"{full} is no property"
        elif what not in ("value", "class") and not (what == "(self)" and face.__init__ is object.__init__):
            got = inspect.signature(getattr(face, member))
            yield from differences(release, full, signature_of(what), got)


def differences_of_module(release, module, names):
    """Says what a face's module lacks, or has otherwise."""
    if module not in MODULES:
        yield f"{module} is missing"
        return
    face = importlib.import_module(MODULES[module])
    for name, what in names.items():
        if name in REFUSED:
            assert not hasattr(face, name)
            continue
        if not hasattr(face, name):
            yield f"{module}.{name} is missing"
        elif isinstance(what, dict):
            yield from differences_of_class(release, name, what, getattr(face, name))
        elif what != "value":
            got = inspect.signature(getattr(face, name))
            yield from differences(release, name, signature_of(what), got)


@pytest.mark.parametrize("release", tables())
def test_the_names_and_signatures_are_the_face_s(release):
    table = tables()[release]
    assert len(table) >= 7 and sum(map(len, table.values())) > 40  # the table is one
    found = [d for module, names in table.items() for d in differences_of_module(release, module, names)]
    assert not found, "\n".join(found)


def test_the_face_says_what_it_follows():
    newest = max(tables(), key=lambda release: [int(part) for part in release.split()[0].split(".")])
    assert nvd.FOLLOWS == newest.split()[0]
