"""The solvers of our own by name."""

from __future__ import annotations

from collections.abc import Callable

from mast_opt.job_placement.heuristics.baselines import BASELINES
from mast_opt.job_placement.heuristics.exhaustive import exhaustive
from mast_opt.job_placement.heuristics.repair import exhaustive_repair
from mast_opt.job_placement.plan import Plan
from mast_opt.job_placement.problem import JobPlacement
from mast_opt.search import Found, Tools

SOLVERS: dict[str, Callable[[JobPlacement, Tools, Plan | None], Found[Plan]]] = {
    "exhaustive": exhaustive,
    "exhaustive+repair": exhaustive_repair,
    **BASELINES,
}
