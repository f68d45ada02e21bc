"""Keywords of hocket's functions: which keywords exist, and which one a wrong keyword meant."""

from __future__ import annotations

import ast
import difflib
import functools
from collections.abc import Iterable
from typing import Any, Callable, NamedTuple, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

#: Two words with one meaning. Calls take `deadline`, as in C++, and waits take `timeout`. A
#: function that takes only one of them accepts the other word, too.
WORDS = ("deadline", "timeout")


def names_of(function: Any) -> tuple[str, ...]:
    """Return the names of the arguments that a function of the C++ module takes by keyword."""
    takes = _takes_of(function.__nb_signature__[0][0])
    return tuple(name for name in takes.by_place + takes.by_name if name != "self")


class _Takes(NamedTuple):
    """The arguments of a function. The first `required` positional arguments have no default.

    `required` is -1 if the signature cannot be read because a default value is no literal.
    """

    by_place: tuple[str, ...] = ()
    by_name: tuple[str, ...] = ()
    required: int = -1


# hocket's import parses all signatures, in one thread. If several threads parse at the same time,
# Python 3.11 may raise SystemError in one of them (python/cpython#106905).
@functools.cache
def _takes_of(signature: str) -> _Takes:
    try:
        arguments = ast.parse(f"{signature}: ...").body[0].args  # type: ignore[attr-defined]
    except SyntaxError:  # a default is no literal; functions of hocket that take keywords have none
        return _Takes()
    by_place = tuple(one.arg for one in arguments.args)
    return _Takes(
        by_place,
        tuple(one.arg for one in arguments.kwonlyargs),
        len(by_place) - len(arguments.defaults),
    )


def explain(function: Any, count: int, given: Iterable[str]) -> None:
    """Raise a TypeError that says which argument is unknown, missing or surplus.

    `count` is the number of positional arguments, including a method's object. `given` holds the
    keywords.
    """
    title, given = _title_of(function), [*given]
    names = names_of(function)
    known = {*names, *(WORDS if {*names} & {*WORDS} else ())}
    if len({*names} & {*WORDS}) == 1 and {*given} >= {*WORDS}:
        raise TypeError(f"{title}() was given deadline and timeout, which are one; give one")
    for name in given:
        if name in known:
            continue
        near = difflib.get_close_matches(name, known, 1)
        takes = f"it takes {', '.join(names)}" if names else "it takes no arguments"
        hint = f"did you mean {near[0]!r}?" if near else takes
        raise TypeError(f"{title}() has no argument {name!r}; {hint}")
    if len(function.__nb_signature__) == 1:
        _explain_places(function, title, count, {_as_in(names, name) for name in given})


def _explain_places(function: Any, title: str, count: int, given: set[str]) -> None:
    signature = function.__nb_signature__[0][0]
    read = _takes_of(signature)
    if read.required < 0:
        return
    takes, required = [*read.by_place], [*read.by_place[: read.required]]
    if takes[:1] == ["self"]:
        takes, required, count = takes[1:], required[1:], count - 1
    shown = signature[signature.index("(") :].replace("(self, ", "(").replace("(self)", "()")
    form = f"it is called as {title}{shown}"
    if count > len(takes):
        most = f"{len(takes)} argument{'' if len(takes) == 1 else 's'}" if takes else "no arguments"
        raise TypeError(f"{title}() takes {most} without a name, and was given {count}; {form}")
    for name in takes[:count]:
        if name in given:
            raise TypeError(f"{title}() was given {name} twice; {form}")
    missing = [name for name in required[count:] if name not in given]
    if missing:
        raise TypeError(f"{title}() is missing {', '.join(missing)}; {form}")
    raise TypeError(f"{title}() was given an argument of another type; {form}")


def _title_of(function: Any) -> str:
    """Return the function's name. For `__call__`, return the name of its type."""
    name = str(function.__name__)
    return str(function.__qualname__).split(".")[0] if name == "__call__" else name


def _as_in(names: tuple[str, ...], name: str) -> str:
    """If `name` is "deadline" or "timeout", return the one that the function takes."""
    return next((one for one in WORDS if one in names), name) if name in WORDS else name


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
