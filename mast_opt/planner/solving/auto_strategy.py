"""Strategy of ``auto``: which solvers work on an instance, side by side or one after the other."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from mast_opt.problems.search.params import Params, parameter
from mast_opt.problems.search.strategy import Strategy

AUTO = "auto"
"""The name of the portfolio among the solvers."""
EXACT = "highs"
"""The exact solver that is installed with mast-opt."""
DEFAULT_SOLVER: Literal["auto"] = "auto"
"""Solver where none is named; where only an exact solver can answer, ``auto`` is ``EXACT``."""


@dataclass(frozen=True)
class AutoParams(Params):
    """Parameters of ``auto``: who solves, and when the heuristic joins."""

    exact: str = parameter(EXACT, "The exact solver.", "It is installed with mast-opt and takes every kind.")
    most_columns: ClassVar[int] = 1_000_000
    """Programs of more columns are left to the heuristic. Set by hand, so that an exact solver does not fill the memory
    for a first relaxation; not measured."""
    alone_columns: ClassVar[int] = 5_000
    """Programs of up to so many columns get a head start before the heuristic joins. Set by hand: where an exact solver
    ends soon, a first use of the heuristic would only compile; not measured."""
    head_start_s: float = parameter(3.0, "Seconds of that head start.", "Set by hand; see alone_columns.", low=0.0)
    head_start_share: ClassVar[float] = 0.1
    """Most of the time limit that the head start takes. Set by hand, so that the heuristic keeps nearly all of a short
    limit."""
    turn_share: ClassVar[float] = 0.5
    """The part of the time limit that the exact solver has on one thread before the heuristic gets the rest, on
    programs of up to alone_columns. Set by hand: neither is sure to be better there."""


@dataclass(frozen=True)
class Portfolio(Strategy):
    """Strategy of ``auto`` on one instance."""

    exact: str
    """The exact solver; empty for none."""
    exact_threads: int
    heuristic: str
    """Empty for none."""
    heuristic_threads: int
    head_start_s: float
    """Seconds that the exact solver runs before the heuristic begins."""
    in_turn: bool = False
    """Whether the exact solver stops at the end of its head start, so that the heuristic has the thread."""


def choose_strategy(
    columns: int | None, heuristic: str, threads: int, params: AutoParams, time_limit_s: float | None = None
) -> Portfolio:
    """Choose the solvers of an instance.

    Args:
        columns: of the program; None where that is not known beforehand.
        heuristic: the one that takes every term and limit of the instance; empty where there is none.
        threads: for all together.
        params: of ``auto``.
        time_limit_s: for all together; None for none.
    """
    small = columns is not None and columns <= params.alone_columns
    limit_s = math.inf if time_limit_s is None else time_limit_s
    if heuristic and threads == 1 and small and time_limit_s is not None:
        return Portfolio(params.exact, 1, heuristic, 1, params.turn_share * limit_s, in_turn=True)
    if not heuristic or (threads == 1 and small):
        return Portfolio(params.exact, threads, "", 0, 0.0)
    if threads == 1 or (columns is not None and columns > params.most_columns):
        return Portfolio("", 0, heuristic, threads, 0.0)
    head_start_s = min(params.head_start_s, params.head_start_share * limit_s) if small else 0.0
    return Portfolio(params.exact, 1, heuristic, threads - 1, head_start_s)


def solver_text(solver: str, strategy: Mapping[str, object], versions: Mapping[str, str]) -> str:
    """Name and version of a solver; of ``auto``, also who found the plan and who proved the bound."""

    def versioned(name: object) -> str:
        return f"{name} {versions.get(str(name), '')}".rstrip()

    planner, prover = strategy.get("plan_by"), strategy.get("bound_by")
    if solver != AUTO or not (planner or prover):
        return versioned(solver)
    if planner == prover:
        return f"{AUTO} (plan and bound by {versioned(planner)})"
    words = [f"{what} by {versioned(name)}" for what, name in (("plan", planner), ("bound", prover)) if name]
    return f"{AUTO} ({', '.join(words)})"
