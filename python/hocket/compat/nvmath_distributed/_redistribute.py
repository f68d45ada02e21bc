"""Redistribute: moving an array from one distribution to another, over `hocket.distribution`."""

from __future__ import annotations

import importlib
import logging
from dataclasses import dataclass
from typing import Any, Literal, Optional, Union

from ... import distribution as _d
from ._base import Distribution
from ._boxes import Box
from ._packages import current_stream, is_on_gpu, orders_of, package_of, synchronize
from ._redistribute_problem import Problem, describe
from ._runtime import communicator
from ._symmetric import allocate_symmetric_memory


class InvalidRedistributeState(Exception):
    """A Redistribute was used after it was freed."""


@dataclass
class RedistributeOptions:
    """How a Redistribute runs.

    Attributes
    ----------
    logger : logging.Logger, optional
        By default the root's.
    blocking : True or "auto"
        With "auto", calls on arrays of GPUs return before they are done.
    """

    logger: Optional[logging.Logger] = None
    blocking: Union[Literal[True], Literal["auto"]] = "auto"

    def __post_init__(self) -> None:
        if self.blocking not in (True, "auto"):
            raise ValueError("The value specified for 'blocking' must be either True or 'auto'.")


class Redistribute:
    """A redistribution, to be planned once and executed again and again.

    Parameters
    ----------
    operand : array
        What this process holds: NumPy's, PyTorch's or CuPy's, of one to three axes. Where it is in
        symmetric memory on all processes, so is each result, and the program frees it.
    input_distribution, output_distribution : Distribution
        How the whole is spread, and how it is to be. In either a process has one box of it.
    options : RedistributeOptions or dict, optional
    stream : optional
        Of a GPU; by default the current one of the operand's package.

    Raises
    ------
    ValueError, BindDistributionError
        The same on all processes, where the operand or the distributions of one do not fit.
    TypeError
        On all processes: blocks are dealt out in turn, so that a process has several boxes.
    """

    _name = "Redistribute"
    _taken: Any = Distribution  # the kind of distributions that are taken

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
            self.options = RedistributeOptions(**options) if isinstance(options, dict) else (
                options or RedistributeOptions()
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
        self._freed = False

    def _check_problem(self, problem: Problem) -> None:
        """For those who want more of it."""

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

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.free()

    def _check(self, what: str = "") -> None:
        if self._freed:
            raise InvalidRedistributeState(
                f"The {self._name} object cannot be used after resources are free'd"
            )
        if what and self._plan is None:
            raise RuntimeError(f"{what} cannot be performed before plan() has been called.")
        if what and self._operand is None:
            raise RuntimeError(
                f"{what} cannot be performed after the operand has been released. Use "
                "reset_operand() to provide a new operand before performing the "
                f"{what.lower()}."
            )

    def plan(self, stream: Any = None) -> None:
        """Agree on what goes where. Collective; again nothing happens."""
        self._check()
        if self._plan is None:
            source, target = self._boxes
            self._plan = _d.Redistribution(self._comm, source, target, self.order)

    def reset_operand(self, operand: Any, *, stream: Any = None) -> None:
        """Take another operand of the same package, dtype, shape, order and memory."""
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

    #: `reset_operand` checks little enough to be called always.
    reset_operand_unchecked = reset_operand

    def release_operand(self) -> None:
        """Let go of the operand; `reset_operand` before the next execution."""
        self._check()
        self._operand = None

    def execute(
        self,
        stream: Any = None,
        release_workspace: bool = False,
        sync_symmetric_memory: bool = True,
    ) -> Any:
        """Move the operand. Collective.

        Returns
        -------
        array
            What this process wants, a new array of the operand's package, in symmetric memory where
            the operand is.
        """
        self._check("Execution")
        assert self._plan is not None
        with current_stream(stream, self._operand):
            result = self._plan(self._operand, self._new_result())
            if self.options.blocking is True and is_on_gpu(result):
                synchronize(result)
        return result

    def _new_result(self) -> Any:
        """In symmetric memory; None where the plan makes one."""
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
        """Let go of everything; again is fine."""
        self._operand = self._plan = None
        self._freed = True


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
    """Move an array from one distribution to another, once; see `Redistribute`."""
    with Redistribute(
        operand, input_distribution, output_distribution, options=options, stream=stream
    ) as one:
        one.plan(stream)
        return one.execute(stream, sync_symmetric_memory=sync_symmetric_memory)
