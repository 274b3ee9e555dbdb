"""Analysis hooks of data placement: what can be asked of it beyond a plan, and independent changes between plans."""

from collections import defaultdict

import numpy as np

from mast_opt.core.wording import counted, listed
from mast_opt.problems.data_placement.analysis import scenarios
from mast_opt.problems.data_placement.analysis.alternatives import WORKLOAD_CHOICES
from mast_opt.problems.data_placement.analysis.dataset_alternatives import DATASET_CHOICES
from mast_opt.problems.data_placement.analysis.elastic_program import relief
from mast_opt.problems.data_placement.analysis.joint_periods import JOINT
from mast_opt.problems.data_placement.analysis.losses import adapted, risk, settle_loss
from mast_opt.problems.data_placement.analysis.purchases import EXPANSION
from mast_opt.problems.data_placement.analysis.two_stage import TWO_STAGE
from mast_opt.problems.data_placement.plan import Plan, filled, today
from mast_opt.problems.data_placement.problem import Bools, DataPlacement, Ints
from mast_opt.problems.kind.analysis_hooks import AnalysisHooks, ChangeGroups, Rolling

NAMED = 3
"""Workloads of a group that are named; the others are counted."""


def change_groups(problem: DataPlacement, before: Plan, after: Plan) -> ChangeGroups | None:
    """The independent changes from one plan to another; None with links, where copies and reads have routes."""
    p = problem
    if p.links is not None:
        return None
    data = np.flatnonzero((before.place != after.place).any(axis=1))
    work = _changed_work(p, before, after)
    root = np.arange(len(p.datasets) + len(p.workloads))
    joins = work[p.reads.workload] & np.isin(p.reads.dataset, data)
    for w, i in zip(p.reads.workload[joins].tolist(), p.reads.dataset[joins].tolist(), strict=True):
        root[root == root[len(p.datasets) + w]] = root[i]
    changed = np.concatenate([data, len(p.datasets) + np.flatnonzero(work)])
    members: dict[int, list[int]] = defaultdict(list)
    for thing in changed.tolist():
        members[int(root[thing])].append(thing)
    groups = tuple(np.array(things) for things in members.values())

    def only(chosen: frozenset[int]) -> Plan:
        """The first plan with the chosen groups as in the second."""
        taken = np.zeros(len(root), np.bool_)
        for group in chosen:
            taken[groups[group]] = True
        datasets, workloads = taken[: len(p.datasets)], taken[len(p.datasets) :]
        place = np.where(datasets[:, None], after.place, before.place)
        kept, new = ~workloads[before.run_workload], workloads[after.run_workload]
        sides = zip(before.rows("run"), after.rows("run"), strict=True)
        columns = [np.concatenate([left[kept], right[new]]) for left, right in sides]
        order = np.lexsort(columns[2::-1])
        return filled(p, place, [column[order] for column in columns])

    return ChangeGroups(tuple(_words(p, before, after, group) for group in groups), only)


def _changed_work(p: DataPlacement, before: Plan, after: Plan) -> Bools:
    """[W] whether the runs of a workload differ."""
    shape = (len(p.workloads), len(p.regions), len(p.gpu_types) + 1)
    share = np.zeros((2, *shape), np.int64)
    for side, plan in enumerate((before, after)):
        np.add.at(share[side], (plan.run_workload, plan.run_region, plan.run_type), plan.run_share)
    changed: Bools = (share[0] != share[1]).any(axis=(1, 2))
    return changed


def _words(p: DataPlacement, before: Plan, after: Plan, group: Ints) -> str:
    """A group in words: what is copied, what is dropped, what work goes where."""
    said = []
    for i in group[group < len(p.datasets)].tolist():
        places = (after.place[i] & ~before.place[i], before.place[i] & ~after.place[i])
        came, gone = (_named([p.regions.labels[r] for r in np.flatnonzero(where)]) for where in places)
        said += [f"{p.datasets.labels[i]}{f' to {came}' if came else ''}{f', no more in {gone}' if gone else ''}"]
    work = group[group >= len(p.datasets)] - len(p.datasets)
    kinds = (*p.gpu_types, "")
    for w in work[:NAMED].tolist():
        runs = np.flatnonzero(after.run_workload == w)
        where = [f"{p.regions.labels[after.run_region[n]]} {kinds[after.run_type[n]]}".strip() for n in runs]
        said += [f"{p.workloads.labels[w]} {f'to {_named(where)}' if where else 'not run'}"]
    said += [counted(len(work) - NAMED, "more workload")] if len(work) > NAMED else []
    return "; ".join(said)


def _named(labels: list[str]) -> str:
    """Names of regions or datasets in words, empty for none."""
    return listed(labels) if labels else ""


QUESTIONS = AnalysisHooks(
    relief=relief,
    choices=(WORKLOAD_CHOICES, DATASET_CHOICES),
    resources=scenarios.RESOURCES,
    changes=scenarios.CHANGES,
    priced=scenarios.priced,
    moved=scenarios.moved,
    guards=lambda problem: ("unserved",) if problem.may_refuse else (),
    two_stage=TWO_STAGE,
    adapted=adapted,
    loss=settle_loss,
    risk=risk,
    expansion=EXPANSION,
    change_groups=change_groups,
    rolling=Rolling(scenarios.carried, scenarios.unhurried, scenarios.with_replicas, today, JOINT),
)
