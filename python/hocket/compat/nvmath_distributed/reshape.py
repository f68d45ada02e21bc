"""Reshape: the name of `Redistribute` between boxes in nvmath 0.9."""

from __future__ import annotations

from typing import Any, Union

from ._boxes import Box
from ._redistribute import InvalidRedistributeState, Redistribute, RedistributeOptions
from ._redistribute_problem import Problem

__all__ = ["InvalidReshapeState", "Reshape", "ReshapeOptions", "reshape"]

InvalidReshapeState = InvalidRedistributeState
ReshapeOptions = RedistributeOptions


class Reshape(Redistribute):
    """A `Redistribute` between boxes.

    Parameters
    ----------
    operand, options, stream
        As in `Redistribute`.
    input_box, output_box : Box
        The part of the whole array that this process holds, and the part that it gets.
    """

    _name = "Reshape"
    _taken: Any = Box

    def __init__(
        self,
        operand: Any,
        /,
        input_box: Box,
        output_box: Box,
        *,
        options: Union[ReshapeOptions, dict[str, Any], None] = None,
        stream: Any = None,
    ) -> None:
        super().__init__(operand, input_box, output_box, options=options, stream=stream)

    def _check_problem(self, problem: Problem) -> None:
        if problem.hulls[0] != problem.hulls[1]:
            raise ValueError(
                "The global box derived from the input and output boxes doesn't match: "
                f"{problem.hulls[0]} != {problem.hulls[1]}"
            )


def reshape(
    operand: Any,
    /,
    input_box: Box,
    output_box: Box,
    *,
    sync_symmetric_memory: bool = True,
    options: Union[ReshapeOptions, dict[str, Any], None] = None,
    stream: Any = None,
) -> Any:
    """Move an array once from box to box; see `Reshape`."""
    with Reshape(operand, input_box, output_box, options=options, stream=stream) as one:
        one.plan(stream)
        return one.execute(stream, sync_symmetric_memory=sync_symmetric_memory)
