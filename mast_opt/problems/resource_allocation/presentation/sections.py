"""Report tables and charts of a resource-allocation plan: what each job gets, and how full the resources are."""

import numpy as np

from mast_opt.problems.kind.presentation import Chart, Form, Head, HeatMap, Lines, Scale, Section, grid, listed
from mast_opt.problems.kind.problem_data import Floats
from mast_opt.problems.resource_allocation.plan import Plan
from mast_opt.problems.resource_allocation.problem import ResourceAllocation
from mast_opt.problems.resource_allocation.verification.measures import Measure

NAMED = 3
"""Configurations of a job that its row names."""


def sections(problem: ResourceAllocation, plan: Plan) -> tuple[Section, ...]:
    """Sections in the order of reading: jobs, groups, resources."""
    measure = Measure(problem, plan)
    groups = (_groups(problem, measure),) if len(problem.groups) else ()
    return (_jobs(problem, measure), *groups, _resources(problem, measure))


def _jobs(p: ResourceAllocation, measure: Measure) -> Section:
    """A row per job; the one with the smallest normalised rate first."""
    normal = measure.rate / p.normal_rate
    used: list[list[tuple[float, str]]] = [[] for _ in range(len(p.jobs))]
    share = measure.plan.share[p.members.configuration]
    for row in np.flatnonzero(share > 0).tolist():
        label = p.configurations.labels[p.members.configuration[row]]
        used[p.members.job[row]].append((float(share[row]), label))
    steps, ratio = p.jobs.steps > 0, measure.finish_time_ratio
    waiting = int((measure.rate <= 0).sum())
    make = "makes" if waiting == 1 else "make"
    note = f"{waiting} of {len(p.jobs)} jobs {make} no progress." if waiting else "Every job makes progress."
    return listed(
        "Jobs",
        np.argsort(normal, kind="stable").tolist(),
        ("job", Form.TEXT, lambda j: p.jobs.labels[j]),
        ("rate", Form.AMOUNT, lambda j: float(measure.rate[j])),
        ("normalised rate", Form.AMOUNT, lambda j: float(normal[j])),
        ("time", Form.FILL, lambda j: float(measure.time[j])),
        ("finish-time ratio", Form.AMOUNT, lambda j: float(ratio[j]) if steps[j] and measure.rate[j] > 0 else None),
        ("configurations (share of the time)", Form.TEXT, lambda j: _named(used[j])),
        note=note,
    )


def _named(used: list[tuple[float, str]]) -> str:
    """The configurations of a job with most of its share, in words."""
    ordered = sorted(used, key=lambda one: -one[0])
    more = f", {len(ordered) - NAMED} more" if len(ordered) > NAMED else ""
    return ", ".join(f"{label} ({share:.1%})" for share, label in ordered[:NAMED]) + more


def _groups(p: ResourceAllocation, measure: Measure) -> Section:
    """A row per group."""
    count = np.bincount(p.jobs.group, minlength=len(p.groups))
    return listed(
        "Groups",
        range(len(p.groups)),
        ("group", Form.TEXT, lambda g: p.groups.labels[g]),
        ("jobs", Form.COUNT, lambda g: int(count[g])),
        ("weight", Form.AMOUNT, lambda g: float(p.groups.weight[g])),
        ("floor", Form.AMOUNT, lambda g: float(p.groups.min_rate[g])),
        ("rate", Form.AMOUNT, lambda g: float(measure.group_rate[g])),
    )


def _resources(p: ResourceAllocation, measure: Measure) -> Section:
    """A row per resource; the fullest first."""
    amount = p.resources.amount
    fill = np.divide(measure.use, amount, out=np.zeros(len(amount)), where=amount > 0)
    rows = [
        (p.resources.labels[k], float(amount[k]), float(measure.use[k]), float(fill[k]) if amount[k] > 0 else None)
        for k in np.argsort(-fill, kind="stable").tolist()
    ]
    heads = (Head("resource"), Head("there is", Form.AMOUNT), Head("used", Form.AMOUNT), Head("filled", Form.FILL))
    return Section("Resources", heads, tuple(rows))


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
