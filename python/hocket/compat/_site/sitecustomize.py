"""Runs at the start of Python processes that use hocket's faces; see `hocket.compat`."""

import os
import sys


def _install() -> None:
    from importlib.util import module_from_spec, spec_from_file_location

    compat = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    spec = spec_from_file_location("_hocket_faces", os.path.join(compat, "_finder.py"))
    assert spec is not None and spec.loader is not None
    finder = module_from_spec(spec)
    spec.loader.exec_module(finder)
    names = finder.installed()
    if not names:
        return
    finder.install_here(finder.check(names))
    root = os.path.dirname(os.path.dirname(compat))
    if root not in sys.path:
        sys.path.append(root)  # the folder that contains hocket


def _go_on() -> None:
    """Run the other sitecustomize module that this module hides, if there is one."""
    from importlib.machinery import PathFinder

    here = os.path.dirname(os.path.abspath(__file__))
    others = [path for path in sys.path if os.path.abspath(path) != here]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(sys.modules[__name__])


_install()
_go_on()
