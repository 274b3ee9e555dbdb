"""Charts of a resource-allocation plan: how full the resources are, and how the normalised rates are spread."""

from __future__ import annotations

import numpy as np

from mast_opt.problems.kind.presentation import Chart, HeatMap, Lines, Scale, grid
from mast_opt.problems.kind.problem_data import Floats
from mast_opt.problems.resource_allocation.plan import Plan
from mast_opt.problems.resource_allocation.problem import ResourceAllocation
from mast_opt.problems.resource_allocation.verification.measures import Measure


def charts(problem: ResourceAllocation, plan: Plan) -> tuple[Chart, ...]:
    """Use of each resource by groups of jobs, and the normalised rates of all jobs in ascending order."""
    p, measure = problem, Measure(problem, plan)
    normal = np.sort(measure.rate / p.normal_rate)
    points = tuple((float(at + 1) / len(normal), float(rate)) for at, rate in enumerate(normal))
    use = _use(p, plan)
    names = (*p.groups.labels, "in no group", "together") if len(p.groups) else ("all jobs",)
    use = np.column_stack([use, use.sum(axis=1)]) if len(p.groups) else use
    rows = [
        [float(used / there) if there > 0 else None for used in row]
        for row, there in zip(use.tolist(), p.resources.amount.tolist(), strict=True)
    ]
    return (
        HeatMap(
            "Use of the resources",
            "resource",
            "group",
            (*p.resources.labels,),
            names,
            None,
            grid(rows),
            Scale.FILL,
            "What several jobs of a configuration use is split evenly among them.",
        ),
        Lines(
            "Rates over those of an equal split",
            "share of the jobs",
            "normalised rate",
            (("jobs", points),),
            "The jobs in ascending order of rate/(weight · fair rate).",
        ),
    )


def _use(p: ResourceAllocation, plan: Plan) -> Floats:
    """[K, groups and none] how much of each resource each group uses."""
    size = np.bincount(p.members.configuration, minlength=len(p.configurations))
    part = np.zeros((len(p.configurations), len(p.groups) + 1))
    np.add.at(part, (p.members.configuration, p.jobs.group[p.members.job]), 1.0 / size[p.members.configuration])
    use = np.zeros((len(p.resources), len(p.groups) + 1))
    at = p.uses.configuration
    np.add.at(use, p.uses.resource, (p.uses.amount * plan.share[at])[:, None] * part[at])
    return use
