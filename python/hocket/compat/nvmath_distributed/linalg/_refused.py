"""nvmath's names without an equivalent in hocket. The errors name them, and say what to do instead.
"""

from __future__ import annotations

from typing import NoReturn

SOLVER = (
    "hocket has no distributed direct solver. Gather the operands with all_gather of "
    "hocket.Context.current().communicator, and solve them with numpy.linalg.solve; or run this part with "
    "nvmath-python itself"
)
HELPERS = (
    "hocket has none of the formats of MXFP8 and FP4 operands. Use FP8 operands with one scale each; or "
    "import nvmath.linalg.advanced.helpers of nvmath-python"
)
REFUSED = {
    "DirectSolver": SOLVER,
    "DirectSolverOptions": SOLVER,
    "InvalidDirectSolverState": SOLVER,
    "direct_solver": SOLVER,
    "helpers": HELPERS,
}


def refuse(module: str, name: str) -> NoReturn:
    """Raise the AttributeError for a name that a module does not have."""
    reason = f": {REFUSED[name]}" if name in REFUSED else ""
    raise AttributeError(f"module {module!r} has no attribute {name!r}{reason}")
