"""Provides signatures for `inspect.signature` and `help`, which nanobind does not do."""

from __future__ import annotations

import ast
import functools
import inspect
from typing import Any


class SignatureOfBound:
    """A descriptor: the attribute `__signature__` of nanobind's function and method types."""

    def __get__(self, function: Any, owner: Any = None) -> inspect.Signature:
        if function is None:
            raise AttributeError("__signature__")
        inner = getattr(function, "__func__", None)  # for a method that is bound to an object
        try:
            signature = _parsed((inner or function).__nb_signature__[0][0])
        except (SyntaxError, ValueError, IndexError):
            raise AttributeError("__signature__") from None
        if inner is None:
            return signature
        return signature.replace(parameters=[*signature.parameters.values()][1:])


@functools.cache
def _parsed(text: str) -> inspect.Signature:
    function = ast.parse(f"{text}: ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(positional) - len(given.defaults)) + given.defaults
    made = [
        inspect.Parameter(
            one.arg,
            kind,
            default=inspect.Parameter.empty if default is None else ast.literal_eval(default),
            annotation=inspect.Parameter.empty if one.annotation is None else ast.unparse(one.annotation),
        )
        for one, default, kind in [
            *zip(positional, defaults, [inspect.Parameter.POSITIONAL_OR_KEYWORD] * len(positional)),
            *zip(given.kwonlyargs, given.kw_defaults, [inspect.Parameter.KEYWORD_ONLY] * len(given.kwonlyargs)),
        ]
    ]
    returns = inspect.Signature.empty if function.returns is None else ast.unparse(function.returns)
    return inspect.Signature(made, return_annotation=returns)
