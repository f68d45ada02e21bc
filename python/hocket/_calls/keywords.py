"""Keywords of hocket's functions: the ones that exist, and the one that a typo meant."""

from __future__ import annotations

import ast
import difflib
import functools
from collections.abc import Iterable
from typing import Any, Callable, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

#: Two words with one meaning: calls take `deadline`, as in C++, and waits take `timeout`. Either is
#: accepted for the other.
WORDS = ("deadline", "timeout")


def names_of(function: Any) -> tuple[str, ...]:
    """The arguments that a function of the C++ module takes by keyword, from its signature."""
    return _names_in(function.__nb_signature__[0][0])


# All signatures of hocket are parsed during its import, in one thread. If several threads parse at
# once, Python 3.11 gives one a SystemError (python/cpython#106905).
@functools.cache
def _names_in(signature: str) -> tuple[str, ...]:
    try:
        arguments = ast.parse(f"{signature}: ...").body[0].args  # type: ignore[attr-defined]
    except SyntaxError:  # a default value that is no literal; none of hocket's has a keyword then
        return ()
    return tuple(one.arg for one in arguments.args + arguments.kwonlyargs if one.arg != "self")


def explain(function: Any, given: Iterable[str]) -> None:
    """Raise InvalidArgument if the error came from a wrong keyword."""
    import difflib

    names = names_of(function)
    known = {*names, *(WORDS if {*names} & {*WORDS} else ())}
    if len({*names} & {*WORDS}) == 1 and {*given} >= {*WORDS}:
        raise TypeError(
            f"{function.__name__}() was given deadline and timeout, which are one; give one"
        )
    for name in given:
        if name in known:
            continue
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(names)}"
        raise TypeError(f"{function.__name__}() has no argument {name!r}; {hint}")


def takes_either(function: F) -> F:
    """Make a Python function that takes `deadline` accept `timeout`, too."""

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        if "timeout" in given:
            if "deadline" in given:
                raise TypeError(
                    f"{function.__name__}() was given deadline and timeout, which are one; give one"
                )
            given["deadline"] = given.pop("timeout")
        return function(*args, **given)

    return call  # type: ignore[return-value]
