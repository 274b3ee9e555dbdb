"""Alternatives for the copies of one dataset of a data-placement plan: one less, one more, or one elsewhere."""

from dataclasses import replace

import numpy as np

from mast_opt.core.wording import listed
from mast_opt.problems.data_placement.analysis.alternatives import RULES, appended, cheapest_sources, phrase
from mast_opt.problems.data_placement.plan import Plan, fill_remote
from mast_opt.problems.data_placement.problem import SHARE, DataPlacement, Ints
from mast_opt.problems.kind.analysis_hooks import Alternative, Decisions

READERS_NAMED = 3
"""Readers of a copy that are named; the rest are counted."""


def now(problem: DataPlacement, plan: Plan, i: int) -> str:
    """``in east (read by rank and spam) and west (read by nothing)``."""
    regions = np.flatnonzero(plan.place[i]).tolist()
    if not regions:
        return "nowhere"
    return "in " + listed([f"{problem.regions.labels[r]} (read by {_readers(problem, plan, i, r)})" for r in regions])


def alternatives(problem: DataPlacement, plan: Plan, i: int) -> tuple[Alternative, ...]:
    """Each copy left out, each region given one, and each copy in each other region instead. Workloads stay where they
    are and read remotely what their region then lacks."""
    labels = problem.regions.labels
    held = np.flatnonzero(plan.place[i]).tolist()
    free = np.flatnonzero(~plan.place[i]).tolist()
    found = [Alternative(f"without the copy in {labels[r]}", labels[r], _with(problem, plan, i, r, None)) for r in held]
    for r in free:
        found.append(Alternative(f"with a copy in {labels[r]} as well", labels[r], _with(problem, plan, i, None, r)))
        found += [
            Alternative(f"in {labels[r]} instead of {labels[q]}", labels[r], _with(problem, plan, i, q, r))
            for q in held
        ]
    return tuple(found)


def _readers(problem: DataPlacement, plan: Plan, i: int, r: int) -> str:
    """Workloads that read a dataset from a region under a plan, in words."""
    reads = problem.reads.workload[problem.reads.dataset == i]
    here = np.isin(plan.run_workload, reads) & (plan.run_region == r)
    far = (plan.remote_dataset == i) & (plan.remote_source == r)
    names = [problem.workloads.labels[w] for w in np.unique(plan.run_workload[here]).tolist()]
    names += [f"{problem.workloads.labels[w]} remotely" for w in np.unique(plan.remote_workload[far]).tolist()]
    more = len(names) - READERS_NAMED
    return listed([*names[:READERS_NAMED], f"{more:,} more"]) if more > 1 else listed(names) if names else "nothing"


def _with(problem: DataPlacement, plan: Plan, i: int, less: int | None, more: int | None) -> Plan:
    """The plan without the copy in one region and with one in another; what is not about the dataset stays."""
    place = plan.place.copy()
    gone = np.zeros(len(plan.copy_dataset), np.bool_)
    if less is not None:
        place[i, less] = False
        gone = (plan.copy_dataset == i) & (plan.copy_target == less)
    source: Ints = np.zeros(0, np.int64)
    if more is not None:
        place[i, more] = True
        if not problem.datasets.stored[i, more]:
            source = cheapest_sources(problem, problem.datasets.stored, np.array([i], np.int64), more)[:, 1]
    copy = appended([column[~gone] for column in plan.rows("copy")], i, source, more or 0, SHARE)
    changed = replace(plan, place=place).with_rows(copy=copy)
    return _with_remote_reads(problem, changed, i)


def _with_remote_reads(problem: DataPlacement, plan: Plan, i: int) -> Plan:
    """The plan with remote reads of the dataset where its copies are: those that are still possible stay, the others
    come whole over the cheapest link."""
    needed = np.stack(fill_remote(problem, plan.place, *plan.rows("run")), axis=1)
    needed = needed[needed[:, 1] == i]
    rows = [needed[:0]]
    kept = plan.remote_dataset != i
    for row in needed:
        workload, target = int(row[0]), int(row[3])
        own = (plan.remote_dataset == i) & (plan.remote_workload == workload) & (plan.remote_target == target)
        if own.any() and plan.place[i, plan.remote_source[own]].all():
            kept |= own
            continue
        for _, source in cheapest_sources(problem, plan.place, np.array([i], np.int64), target).tolist():
            rows.append(np.array([[workload, i, source, target, row[4]]], np.int64))
    new = np.concatenate(rows)
    remote = appended([column[kept] for column in plan.rows("remote")], *new.T)
    return plan.with_rows(remote=remote)


def _largest(problem: DataPlacement) -> list[int]:
    """Datasets by size, the largest first."""
    order: list[int] = np.argsort(-problem.datasets.size_mb, kind="stable").tolist()
    return order


DATASET_CHOICES = Decisions(
    "dataset",
    lambda problem: problem.datasets.labels,
    _largest,
    now,
    alternatives,
    phrase,
    verb="is stored",
    lasting=lambda violation: violation.constraint in RULES,
)
