"""Sub-MIPs: where a heuristic hands a part of its problem to an exact solver, under limits that are parameters.

A solver declares a group of these parameters, with the defaults that suit it, and builds one ``SubMip`` from it:

    class RasParams(Params):
        sub_mip: SubMipParams = group(SubMipParams(gap=1e-3, node_limit=300, time_limit_s=3.0), "…")

    sub_mip = SubMip(tools, params.sub_mip)
    result = sub_mip(mip, sub_mip.limits(start=x))

A solver with sub-problems of two sorts declares two groups (``sub_mip``, ``integer_sub_mip``). ``SubMip`` is a
``MipSolver`` itself.
"""

import math
from dataclasses import dataclass

from mast_opt.core.arrays import FloatArray
from mast_opt.core.solve_result import SolveParams, SolveResult
from mast_opt.problems.mip import Mip
from mast_opt.problems.search.interface import SearchContext
from mast_opt.problems.search.params import Params, parameter

LEAST_S = 0.01
"""A solver is given at least so many seconds, where time runs out as it is about to be called."""
NO_NODE_LIMIT = 2**31 - 1
"""A limit in nodes that is none."""


@dataclass(frozen=True)
class SubMipParams(Params):
    """Exact solver of the sub-problems of a heuristic, and its limits."""

    solver: str = parameter(
        "highs",
        "The MIP backend that solves sub-problems, by the name that 'mast-opt backends' lists.",
        "It is always installed, and limits by nodes make its answers the same on every machine.",
    )
    gap: float = parameter(
        1e-4, "Relative gap at which a sub-problem counts as solved.", "The default of a solve.", low=0, high=1
    )
    node_limit: int = parameter(
        NO_NODE_LIMIT,
        "Most nodes of the branch-and-bound tree; at its greatest value there is no limit.",
        "A limit in nodes, unlike one in seconds, is the same on every machine.",
        low=1,
        high=NO_NODE_LIMIT,
    )
    time_limit_s: float = parameter(
        3600.0,
        "Most seconds for one sub-problem. Where the search has no time limit, sub-problems have none either.",
        "What remains of the search's time limits it too.",
        above=0,
    )
    threads: int = parameter(
        0,
        "Threads for one sub-problem; 0 for as many as the search may use.",
        "Sub-problems are solved one at a time, so that all threads are free.",
        low=0,
    )


class SubMip:
    """The exact solver of a heuristic's sub-problems; callable as a ``MipSolver``."""

    def __init__(self, tools: SearchContext, params: SubMipParams) -> None:
        self._tools, self._params = tools, params
        self._solver = tools.backends(params.solver)

    def __call__(self, mip: Mip, params: SolveParams) -> SolveResult:
        """Minimise ``mip``; the backend's version is recorded in the solution's ``versions``."""
        return self._solver(mip, params)

    def limits(
        self,
        *,
        seed: int = 0,
        at_most_s: float | None = None,
        gap: float = math.inf,
        start: FloatArray | None = None,
    ) -> SolveParams:
        """Limits of one sub-problem: those of the parameters, and what remains of the search's time.

        Where the search counts its rounds, the clock must have no say in what it finds: of seconds, only what remains
        of a time limit and ``at_most_s`` limit the sub-problem then. A caller that needs other limits changes the
        answer by ``dataclasses.replace``.

        Args:
            at_most_s: seconds, instead of the parameter ``time_limit_s``; without a time limit they have no meaning.
            gap: holds where it is smaller than the parameter, as the gap of the solve for a sub-problem whose answer
                is the plan.
            start: a value for every column.
        """
        params, stop = self._params, self._tools.watch.stop
        if at_most_s is None:
            at_most_s = math.inf if stop.iterations is not None else params.time_limit_s
        timed = stop.time_limit_s is not None
        return SolveParams(
            time_limit_s=max(min(at_most_s, self._tools.watch.remaining_s), LEAST_S) if timed else None,
            gap=min(params.gap, gap),
            seed=seed,
            threads=params.threads or self._tools.threads,
            node_limit=None if params.node_limit == NO_NODE_LIMIT else params.node_limit,
            start=start,
            cancel=stop.cancel,
        )
