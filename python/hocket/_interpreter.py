"""Whether Python code may import what hocket is made of."""

from __future__ import annotations


def require_main() -> None:
    """Raise ImportError in a subinterpreter.

    What is bound there is one for the process. To begin to import it once more is enough for the
    main interpreter's communicators to take no argument any more.
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
