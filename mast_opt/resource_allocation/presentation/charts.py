"""Charts of a resource-allocation plan: how full the resources are, and how the normalised rates are spread."""

from __future__ import annotations

import numpy as np

from mast_opt.kind.presentation import Bars, Chart, Lines, Scale
from mast_opt.resource_allocation.plan import Plan
from mast_opt.resource_allocation.problem import ResourceAllocation
from mast_opt.resource_allocation.verification.measures import Measure


def charts(problem: ResourceAllocation, plan: Plan) -> tuple[Chart, ...]:
    """Use of each resource, and the normalised rates of all jobs in ascending order."""
    p, measure = problem, Measure(problem, plan)
    fill = [
        float(used / there) if there > 0 else None for used, there in zip(measure.use, p.resources.amount, strict=True)
    ]
    normal = np.sort(measure.rate / p.normal_rate)
    points = tuple((float(at + 1) / len(normal), float(rate)) for at, rate in enumerate(normal))
    return (
        Bars(
            "Use of the resources",
            "resource",
            p.resources.labels,
            (("used share", tuple(fill)),),
            scale=Scale.FILL,
        ),
        Lines(
            "Rates over those of an equal split",
            "share of the jobs",
            "normalised rate",
            (("jobs", points),),
            "The jobs in ascending order of rate/(weight · fair rate).",
        ),
    )
