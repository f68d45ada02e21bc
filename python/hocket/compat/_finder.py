"""The finder that puts hocket's faces under other packages' names.

If the environment names faces, every Python process loads this file when it starts (see `_site`).
So this file imports only the standard library: the start must not take the time to import NumPy.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any, Optional, cast

#: The variable that tells child processes the installed names, separated by commas.
VARIABLE = "HOCKET_COMPAT"

#: The faces by name. Each has the modules that it provides, with hocket's module for each. A name
#: may end with @ and a year or release. Such a face follows an older version of its package.
FACES: dict[str, dict[str, str]] = {
    "cupyx.distributed": {
        "cupyx.distributed": "hocket.compat.cupyx_distributed",
        "cupyx.distributed._init": "hocket.compat.cupyx_distributed._init",
        "cupyx.distributed._nccl_comm": "hocket.compat.cupyx_distributed._nccl_comm",
        "cupyx.distributed._store": "hocket.compat.cupyx_distributed._store",
    },
    "tike.communicators": {
        "tike.communicators": "hocket.compat.tike_communicators",
        "tike.communicators.comm": "hocket.compat.tike_communicators.comm",
        "tike.communicators.mpi": "hocket.compat.tike_communicators.mpi",
        "tike.communicators.pool": "hocket.compat.tike_communicators.pool",
        "tike.communicators.stream": "hocket.compat.tike_communicators.stream",
    },
    "tike.communicators@2021": {
        "tike.communicators": "hocket.compat.tike_communicators._api_2021",
        "tike.communicators.comm": "hocket.compat.tike_communicators._api_2021",
        "tike.communicators.mpi": "hocket.compat.tike_communicators.mpi",
        "tike.communicators.pool": "hocket.compat.tike_communicators._api_2021",
        "tike.communicators.stream": "hocket.compat.tike_communicators.stream",
    },
    "bagua": {
        "bagua.torch_api": "hocket.compat.bagua",
        "bagua.torch_api.communication": "hocket.compat.bagua.communication",
        "bagua.torch_api.env": "hocket.compat.bagua.env",
        "bagua.torch_api.tensor": "hocket.compat.bagua.tensor",
    },
    "nvmath.distributed": {
        "nvmath.distributed": "hocket.compat.nvmath_distributed",
        "nvmath.distributed.distribution": "hocket.compat.nvmath_distributed.distribution",
        "nvmath.distributed.process_group": "hocket.compat.nvmath_distributed.process_group",
        "nvmath.distributed.fft": "hocket.compat.nvmath_distributed.fft",
        "nvmath.distributed.linalg": "hocket.compat.nvmath_distributed.linalg",
        "nvmath.distributed.linalg.advanced": "hocket.compat.nvmath_distributed.linalg.advanced",
        "nvmath.distributed.linalg.generic": "hocket.compat.nvmath_distributed.linalg.generic",
        "nvmath.distributed.reshape": "hocket.compat.nvmath_distributed.reshape",
    },
}


def check(names: Iterable[str]) -> list[str]:
    """Return the names without repetition. Raise ValueError if there is no face for a name."""
    unique = list(dict.fromkeys(names))
    for name in unique:
        if name not in FACES:
            raise ValueError(
                f"hocket.compat: there is no face for {name!r}, expected one of {', '.join(FACES)}"
            )
    return unique


class Finder:
    """Finds the modules of the installed faces, and parent packages that no other finder has.

    If a face lacks a module, the module comes from the package for which the face stands, if that
    is installed.

    A process has one such finder, first in ``sys.meta_path``. The finder holds only names; a face's
    own imports happen when the face is imported.
    """

    is_hocket = True

    def __init__(self) -> None:
        self.modules: dict[str, str] = {}  # maps an imported name to hocket's module
        self.parents: set[str] = set()
        self.empty: set[str] = set()  # parent packages that contain only faces

    def add(self, names: Iterable[str]) -> None:
        """Serve these faces, too. Remove modules that were imported under their names before."""
        for name in names:
            for module, face in FACES[name].items():
                if self.modules.get(module) != face:
                    _forget(module)
                self.modules[module] = face
                parent = module.rpartition(".")[0]
                while parent:
                    self.parents.add(parent)
                    parent = parent.rpartition(".")[0]
            package = name.partition("@")[0]
            if package not in FACES[name]:
                self.empty.add(package)
        self.parents -= {*self.modules, *self.empty}

    def find_spec(
        self,
        name: str,
        path: Optional[Sequence[str]] = None,
        target: Optional[ModuleType] = None,
    ) -> Optional[importlib.machinery.ModuleSpec]:
        """Find a module. The import system calls this once for each module that is not imported
        yet.
        """
        if name in self.modules:
            return importlib.machinery.ModuleSpec(name, _FaceLoader(self.modules[name]))
        if name in self.empty:
            return _empty_package(name, self._folders(name))
        if name in self.parents:
            return self._found_by_others(name, path) or _empty_package(name)
        package, _, module = name.rpartition(".")
        if package in self.modules:
            folders = self._folders(package)
            return None if folders is None else self._found_by_others(name, folders)
        # For `from package import module`, the import system uses the name of the face's own
        # module.
        for original, face in self.modules.items():
            if face == package:
                return self._found_by_others(name, path) or self._alias(f"{original}.{module}")
        return None

    def _alias(self, name: str) -> Optional[importlib.machinery.ModuleSpec]:
        if self.find_spec(name) is None:
            return None
        return importlib.machinery.ModuleSpec(name, _FaceLoader(name))

    def _folders(self, package: str) -> Optional[Sequence[str]]:
        """Return the folders of a package for which a face stands. Imports nothing of that package.
        """
        parent = package.rpartition(".")[0]
        path = self._folders(parent) if parent else None
        if parent and path is None:
            return None
        spec = self._found_by_others(package, path)
        return None if spec is None else spec.submodule_search_locations

    def _found_by_others(
        self, name: str, path: Optional[Sequence[str]]
    ) -> Optional[importlib.machinery.ModuleSpec]:
        for finder in sys.meta_path:
            find_spec = getattr(finder, "find_spec", None)
            if finder is self or find_spec is None:
                continue
            spec: Optional[importlib.machinery.ModuleSpec] = find_spec(name, path)
            if spec is not None:
                return spec
        return None


def _empty_package(
    name: str, folders: Optional[Sequence[str]] = None
) -> importlib.machinery.ModuleSpec:
    spec = importlib.machinery.ModuleSpec(name, _EmptyLoader(), is_package=True)
    spec.submodule_search_locations = list(folders or ())
    return spec


class _FaceLoader(importlib.abc.Loader):
    """Loads a module of a face by importing hocket's module for it."""

    def __init__(self, face: str) -> None:
        self.face = face
        self.spec: Any = None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.face)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The module has run already. The import system has only replaced its spec by that of the
        # other name.
        module.__spec__ = self.spec


class _EmptyLoader(importlib.abc.Loader):
    """Makes an empty package, which is the parent of faces."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        return None


def _forget(module: str) -> None:
    sys.modules.pop(module, None)
    parent, _, child = module.rpartition(".")
    if parent in sys.modules and hasattr(sys.modules[parent], child):
        delattr(sys.modules[parent], child)


def install_here(names: Iterable[str]) -> None:
    """Serve the faces in this process only."""
    for there in sys.meta_path:
        # An isinstance check would fail: when a process starts, this file is loaded under another
        # name.
        if getattr(there, "is_hocket", False):
            cast(Finder, there).add(names)
            return
    finder = Finder()
    finder.add(names)
    sys.meta_path.insert(0, finder)


def installed() -> list[str]:
    """Return the faces that the environment names for child processes."""
    return [name for name in os.environ.get(VARIABLE, "").split(",") if name]


def site_folder() -> str:
    """Return the folder whose sitecustomize installs the faces in a new process."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "_site")


def tell_children(names: Iterable[str]) -> None:
    """Make Python processes that this process starts serve the faces, too."""
    os.environ[VARIABLE] = ",".join(dict.fromkeys([*installed(), *names]))
    folder = site_folder()
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if folder not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([folder, *paths])
