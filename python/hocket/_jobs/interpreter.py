"""Refuses to import hocket in a subinterpreter."""

from __future__ import annotations


def require_main() -> None:
    """Raise ImportError in a subinterpreter.

    hocket's C++ types exist once in a process. A second import, even a partial one, would change
    them so that the main interpreter's communicators could not take arguments any more.
    """
    try:
        import _interpreters as interpreters  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        try:
            import _xxsubinterpreters as interpreters  # type: ignore[import-not-found, no-redef, unused-ignore]
        except ImportError:  # a Python without subinterpreters
            return
    if interpreters.get_current() != interpreters.get_main():
        raise ImportError(
            "hocket works in a process's main interpreter alone, not in its subinterpreters; for "
            "ranks of one process see hocket.run_threads"
        )
