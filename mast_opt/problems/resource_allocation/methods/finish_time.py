"""Finish-time fairness: the smallest ratio ρ at which every job can finish within ρ times its fair time, then the next.

A ratio needs the rates steps/(ρ·fair − elapsed). One linear program says by which factor an allocation can exceed (or
must miss) all of them together; its prices say at which ratio they cease to be affordable. That is a bound on every
ratio, and the next ratio to try: Newton's method on a convex function, which converges quadratically from below.
"""

from __future__ import annotations

import numpy as np

from mast_opt.problems.resource_allocation.methods.columns import Columns
from mast_opt.problems.resource_allocation.methods.incumbent import Incumbent
from mast_opt.problems.resource_allocation.methods.levels import next_levels, one_level, saturated
from mast_opt.problems.resource_allocation.methods.params import AllocationParams
from mast_opt.problems.resource_allocation.methods.solves import Stopped
from mast_opt.problems.resource_allocation.problem import ResourceAllocation


def finish_time(problem: ResourceAllocation, columns: Columns, incumbent: Incumbent, params: AllocationParams) -> str:
    """Iterate until objective and bound agree, then raise the other jobs; returns what stopped it, or nothing."""
    jobs = problem.jobs
    fair = problem.fair_finish_s
    least = float((jobs.elapsed_s / fair).max())
    slope = jobs.steps / fair
    for round_ in range(params.most_rounds):
        try:
            level, found = one_level(columns, slope)
        except Stopped:
            if round_:
                return "a limit stopped the iteration"
            raise
        if level <= 0:
            return ""
        incumbent.offer(found.share)
        incumbent.prove(found.prices)
        if incumbent.objective is None or incumbent.bound is None:
            return "rounding breaks a limit"
        if incumbent.gap() <= params.finish_time_gap:
            return next_levels(problem, columns, incumbent, slope * level, saturated(found.weight * slope))
        ratio = incumbent.bound
        if not ratio > least * (1 + 1e-12):
            ratio = (max(ratio, least) + incumbent.objective) / 2
        slope = jobs.steps / np.maximum(ratio * fair - jobs.elapsed_s, np.finfo(float).tiny)
    return f"the iteration took {params.most_rounds} rounds (most_rounds)"
