"""Redistribute: moves an array from one distribution to another, over `hocket.distribution`."""

from __future__ import annotations

import importlib
import logging
from dataclasses import dataclass
from typing import Any, Literal, Optional, Union

from ... import distribution as _d
from ..._arrays.kinds import is_on_gpu
from ._base import Distribution
from ._boxes import Box
from ._lifetime import Planned
from ._packages import current_stream, orders_of, package_of, synchronize
from ._redistribute_problem import Problem, describe
from ._runtime import communicator
from ._symmetric import allocate_symmetric_memory


class InvalidRedistributeState(Exception):
    """A Redistribute was used after it was freed."""


@dataclass
class RedistributeOptions:
    """Options of a Redistribute.

    Attributes
    ----------
    logger : logging.Logger, optional
        By default the root logger.
    blocking : True or "auto"
        With "auto", calls on arrays in GPUs' memory return before they are done.
    """

    logger: Optional[logging.Logger] = None
    blocking: Union[Literal[True], Literal["auto"]] = "auto"

    def __post_init__(self) -> None:
        if self.blocking not in (True, "auto"):
            raise ValueError("The value specified for 'blocking' must be either True or 'auto'.")


class Redistribute(Planned):
    """A redistribution that is planned once and executed repeatedly.

    Parameters
    ----------
    operand : array
        This process's part: an array of NumPy, PyTorch or CuPy with one to three axes. If it lies
        in symmetric memory on all processes, each result does, too, and the program frees the
        results.
    input_distribution, output_distribution : Distribution
        The distributions of the whole array before and after. In both, each process has one box.
    options : RedistributeOptions or dict, optional
    stream : optional
        A GPU's stream; by default the current stream of the operand's package.

    Raises
    ------
    ValueError, BindDistributionError
        Raised on all processes if one process's operand or distributions do not fit.
    TypeError
        Raised on all processes if blocks are distributed cyclically, so that a process has several
        boxes.
    """

    _name = "Redistribute"
    _freed_error = InvalidRedistributeState
    _taken: Any = Distribution  # the class of distributions that the constructor accepts

    def __init__(
        self,
        operand: Any,
        /,
        input_distribution: Distribution,
        output_distribution: Distribution,
        *,
        options: Union[RedistributeOptions, dict[str, Any], None] = None,
        stream: Any = None,
    ) -> None:
        self._comm = communicator()
        wrong = ""
        try:
            self.options: RedistributeOptions = (
                RedistributeOptions(**options) if isinstance(options, dict)
                else options or RedistributeOptions()
            )
        except (TypeError, ValueError) as error:
            self.options, wrong = RedistributeOptions(), str(error)
        given = (input_distribution, output_distribution)
        said = describe(self._name, operand, given, self._taken, self.options)
        said["error"] = wrong or said["error"]
        problem = Problem(self._comm.all_gather_object(said), *given)
        self._check_problem(problem)
        self.order = problem.order
        self._is_symmetric = problem.is_symmetric
        self._boxes = [problem.box(d, hull[0]) for d, hull in zip(given, problem.hulls)]
        self._operand: Any = operand
        self._kind = self._kind_of(operand)
        self._plan: Optional[_d.Redistribution] = None

    def _check_problem(self, problem: Problem) -> None:
        """Check the merged problem. Derived classes check more."""

    @property
    def input_box(self) -> Box:
        """This process's part of the operand."""
        return Box(*self._boxes[0])

    @property
    def output_box(self) -> Box:
        """This process's part of the result."""
        return Box(*self._boxes[1])

    @staticmethod
    def _kind_of(operand: Any) -> tuple[Any, ...]:
        return (package_of(operand), str(operand.dtype), tuple(operand.shape),
                is_on_gpu(operand), orders_of(operand))

    def plan(self, stream: Any = None) -> None:
        """Make the plan. Collective; it may be called again."""
        self._check()
        if self._plan is None:
            source, target = self._boxes
            self._plan = _d.Redistribution(self._comm, source, target, self.order)

    def reset_operand(self, operand: Any, *, stream: Any = None) -> None:
        """Replace the operand by another one of the same package, dtype, shape, order and memory.
        """
        self._check()
        if operand is None:
            raise ValueError(
                "reset_operand() requires a valid operand. Use release_operand() to release the operand."
            )
        kind = self._kind_of(operand)
        if kind[0] != self._kind[0]:
            raise TypeError(f"Library package mismatch: '{self._kind[0]}' => '{kind[0]}'")
        for name, mine, given in zip(
            ("data type", "shape", "memory space", "order in memory"), self._kind[1:], kind[1:]
        ):
            if given != mine:
                raise ValueError(
                    f"The {name} of the new operand ({given}) does not match the original one "
                    f"({mine})."
                )
        self._operand = operand

    #: `reset_operand` is already cheap, so an unchecked form would not be faster.
    reset_operand_unchecked = reset_operand

    def release_operand(self) -> None:
        """Drop the operand; call `reset_operand` before the next execution."""
        self._check()
        self._operand = None

    def execute(
        self,
        stream: Any = None,
        release_workspace: bool = False,
        sync_symmetric_memory: bool = True,
    ) -> Any:
        """Redistribute the operand. Collective.

        Returns
        -------
        array
            This process's part of the result: a new array of the operand's package. It lies in
            symmetric memory if the operand does.
        """
        self._check_execution(self._plan is not None, self._operand is not None)
        assert self._plan is not None
        with current_stream(stream, self._operand):
            result = self._plan(self._operand, self._new_result())
            if self.options.blocking is True and is_on_gpu(result):
                synchronize(result)
        return result

    def _new_result(self) -> Any:
        """Return a new array in symmetric memory. Return None if the plan makes the result."""
        if not self._is_symmetric:
            return None
        return allocate_symmetric_memory(
            self._boxes[1].shape,
            importlib.import_module(package_of(self._operand)),
            dtype=self._operand.dtype,
            axis_order=self.order,
            make_symmetric=True,
            logger=self.options.logger,
        )

    def free(self) -> None:
        """Release everything. It may be called again."""
        self._operand = self._plan = None
        super().free()


def redistribute(
    operand: Any,
    /,
    input_distribution: Distribution,
    output_distribution: Distribution,
    *,
    sync_symmetric_memory: bool = True,
    options: Union[RedistributeOptions, dict[str, Any], None] = None,
    stream: Any = None,
) -> Any:
    """Move an array once from one distribution to another; see `Redistribute`."""
    with Redistribute(
        operand, input_distribution, output_distribution, options=options, stream=stream
    ) as one:
        one.plan(stream)
        return one.execute(stream, sync_symmetric_memory=sync_symmetric_memory)
