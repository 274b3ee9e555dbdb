"""Job-placement solvers of our own, by name."""

from __future__ import annotations

from collections.abc import Callable

from mast_opt.job_placement.exhaustive.baselines import BASELINES
from mast_opt.job_placement.exhaustive.ruin_and_recreate import exhaustive_repair
from mast_opt.job_placement.exhaustive.solver import exhaustive
from mast_opt.job_placement.plan import Plan
from mast_opt.job_placement.problem import JobPlacement
from mast_opt.search.interface import SearchContext, SearchResult

SOLVERS: dict[str, Callable[[JobPlacement, SearchContext, Plan | None], SearchResult[Plan]]] = {
    "exhaustive": exhaustive,
    "exhaustive+repair": exhaustive_repair,
    **BASELINES,
}
