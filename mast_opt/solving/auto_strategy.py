"""Strategy of ``auto``: which solvers work on an instance side by side."""

from __future__ import annotations

from dataclasses import dataclass

from mast_opt.search.params import Params, parameter
from mast_opt.search.strategy import Strategy

AUTO = "auto"
"""The name of the portfolio among the solvers."""


@dataclass(frozen=True)
class AutoParams(Params):
    """Parameters of ``auto``: who solves, and when the heuristic joins."""

    exact: str = parameter("highs", "The exact solver.", "It is installed with mast-opt and takes every kind.")
    most_columns: int = parameter(
        1_000_000,
        "Programs of more columns are left to the heuristic.",
        "Set by hand, so that an exact solver does not fill the memory for a first relaxation; not measured.",
        low=0,
    )
    alone_columns: int = parameter(
        5_000,
        "Programs of up to so many columns get a head start before the heuristic joins.",
        "Set by hand: where an exact solver ends soon, a first use of the heuristic would only compile; not measured.",
        low=0,
    )
    head_start_s: float = parameter(3.0, "Seconds of that head start.", "Set by hand; see alone_columns.", low=0.0)


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
    """Of the exact solver."""


def choose_strategy(
    columns: int | None, heuristic: str, threads: int, is_program: bool, params: AutoParams
) -> Portfolio:
    """Who solves an instance.

    Args:
        columns: of the program; None where that is not known beforehand.
        heuristic: the one that takes every term and limit of the instance; empty where there is none.
        threads: for all together.
        is_program: whether an exact solver gets the whole instance as one program.
        params: of ``auto``.
    """
    small = columns is not None and columns <= params.alone_columns
    if not heuristic or not is_program or (threads == 1 and small):
        return Portfolio(params.exact, threads, "", 0, 0.0)
    if threads == 1 or (columns is not None and columns > params.most_columns):
        return Portfolio("", 0, heuristic, threads, 0.0)
    return Portfolio(params.exact, 1, heuristic, threads - 1, params.head_start_s if small else 0.0)
