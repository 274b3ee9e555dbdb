"""Limits of a solve: the keywords of every function that solves, with their types, defaults and meaning."""

import threading
from collections.abc import Callable, Mapping
from typing import Any, TypedDict

from mast_opt.core.solve_result import Event, SolveParams


class TimeLimits(TypedDict, total=False):
    """Keywords of a function that answers a question by solves of its own.

    time_limit_s: seconds for all that the function does, or for each solve, as it says; None for no limit.
    threads: of each solve; None leaves it to the solver.
    cancel: set it from any thread to stop with what is known by then.
    """

    time_limit_s: float | None
    threads: int | None
    cancel: threading.Event | None


class SolveLimits(TimeLimits, total=False):
    """Keywords of a function that hands an instance to a solver.

    gap: relative gap at which a solve may stop.
    seed: of every random choice.
    """

    gap: float
    seed: int


class SolveControl(SolveLimits, total=False):
    """Keywords of ``solve``.

    iterations: rounds of a heuristic; with it, equal seeds and threads give equal plans on every machine, unless the
    solver's page names an exception. It is an error for heuristics that build one plan and end.
    on_event: called with incumbent and bound whenever either improves, from the solving thread. Where kernels have to
    be compiled first, also with ``compiling`` when that begins, and with nothing known when it has ended.
    """

    iterations: int | None
    on_event: Callable[[Event], None] | None


_DEFAULTS: SolveControl = {
    "time_limit_s": None,
    "gap": SolveParams().gap,
    "seed": 0,
    "threads": None,
    "iterations": None,
    "on_event": None,
    "cancel": None,
}


def keywords_of(limits: type[Any], **others: object) -> Mapping[str, object]:
    """Keyword → default of a class of limits, for ``checked``.

    Args:
        others: defaults of one function that differ.
    """
    return {name: others.get(name, default) for name, default in _DEFAULTS.items() if name in limits.__annotations__}


def params_of(limits: SolveLimits | TimeLimits) -> SolveParams:
    """The limits as a backend is given them. Those that are not stated have their defaults."""
    given: SolveControl = {**_DEFAULTS, **limits}
    return SolveParams(
        time_limit_s=given["time_limit_s"],
        gap=given["gap"],
        seed=given["seed"],
        threads=given["threads"],
        cancel=given["cancel"] or threading.Event(),
    )
