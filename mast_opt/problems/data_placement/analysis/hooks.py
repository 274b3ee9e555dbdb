"""Analysis hooks of data placement: what can be asked of it beyond a plan, and independent changes between plans."""

from collections import defaultdict
from dataclasses import replace

import numpy as np

from mast_opt.core.wording import counted, listed
from mast_opt.problems.data_placement.analysis import scenarios
from mast_opt.problems.data_placement.analysis.alternatives import WORKLOAD_CHOICES
from mast_opt.problems.data_placement.analysis.dataset_alternatives import DATASET_CHOICES
from mast_opt.problems.data_placement.analysis.elastic_program import relief
from mast_opt.problems.data_placement.analysis.joint_periods import JOINT
from mast_opt.problems.data_placement.analysis.losses import adapted, placed_soon, risk, settle_loss, unavoidable_terms
from mast_opt.problems.data_placement.analysis.purchases import EXPANSION
from mast_opt.problems.data_placement.analysis.two_stage import TWO_STAGE, with_replicas_only
from mast_opt.problems.data_placement.goals import least_change
from mast_opt.problems.data_placement.migration.kept_runs import kept_replicas, kept_runs
from mast_opt.problems.data_placement.plan import RELATIONS, Plan, filled, today
from mast_opt.problems.data_placement.problem import Bools, DataPlacement, Ints
from mast_opt.problems.kind.analysis_hooks import AnalysisHooks, ChangeGroups, Loss, Rolling

NAMED = 3
"""Workloads of a group that are named; the others are counted."""


def change_groups(problem: DataPlacement, before: Plan, after: Plan) -> ChangeGroups:
    """The independent changes from one plan to another: datasets that change, each with its readers that do."""
    p, sides = problem, tuple(_with_sources(problem, plan) for plan in (before, after))
    rows = {name: tuple(plan.rows(name) for plan in sides) for name in RELATIONS}
    data, work = np.zeros(len(p.datasets), np.bool_), np.zeros(len(p.workloads), np.bool_)
    data[(before.place != after.place).any(axis=1)] = True
    data[_differing(*rows["copy"])] = True
    work[_differing(*rows["run"])] = True
    work[_differing(*rows["remote"])] = True
    root = np.arange(len(data) + len(work))
    joins = work[p.reads.workload] & data[p.reads.dataset]
    for w, i in zip(p.reads.workload[joins].tolist(), p.reads.dataset[joins].tolist(), strict=True):
        root[root == root[len(data) + w]] = root[i]
    members: dict[int, list[int]] = defaultdict(list)
    for thing in np.flatnonzero(np.concatenate([data, work])).tolist():
        members[int(root[thing])].append(thing)
    groups = tuple(np.array(things) for things in members.values())

    def only(chosen: frozenset[int]) -> Plan:
        """The first plan with the chosen groups as in the second."""
        taken = np.zeros(len(root), np.bool_)
        for group in chosen:
            taken[groups[group]] = True
        datasets, workloads = taken[: len(data)], taken[len(data) :]
        place, columns = np.where(datasets[:, None], after.place, before.place), []
        for name, (old, new) in rows.items():
            of = datasets if name == "copy" else workloads
            found = [np.concatenate([a[~of[old[0]]], b[of[new[0]]]]) for a, b in zip(old, new, strict=True)]
            order = np.lexsort(found[::-1])
            columns += [column[order] for column in found]
        return Plan(place, *columns)

    return ChangeGroups(tuple(_words(p, before, after, group) for group in groups), only)


def _with_sources(p: DataPlacement, plan: Plan) -> Plan:
    """The plan with the sources of what is new today and of what is read from elsewhere; any do without links."""
    if p.links is None:
        plan = filled(p, plan.place, plan.rows("run"))
        return plan.with_rows(remote=[column[plan.remote_source >= 0] for column in plan.rows("remote")])
    new = ~p.datasets.stored[plan.copy_dataset, plan.copy_target]
    return plan.with_rows(copy=[column[new] for column in plan.rows("copy")])


def _differing(before: tuple[Ints, ...], after: tuple[Ints, ...]) -> list[int]:
    """First entries of the rows that only one of two relations has."""
    return [row[0] for row in set(zip(*before, strict=True)) ^ set(zip(*after, strict=True))]


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


def after_loss(problem: DataPlacement, plan: Plan, region: str) -> tuple[DataPlacement, Loss]:
    """The instance after the loss of a region, with the replicas of a plan that are left, and that loss.

    Every dataset stays where it is left. Limits on the whole plan are given up; what counts is the goal
    ``least-change``.
    """
    changes = {"lose_regions": [region]}
    settled, loss = settle_loss(problem, scenarios.lose_regions(problem, [region]), changes, plan)
    return _placed_again(replace(settled, limits={}), plan.place), loss


def first_stage(problem: DataPlacement) -> DataPlacement | None:
    """The instance with its replicas as they are, where work is placed by the goal ``least-change``; None where no work
    of a lost region may run anywhere."""
    p = problem
    down = p.current_runs.workload[p.gone[p.current_runs.region]]
    return _placed_again(p, p.datasets.stored) if p.allowed[down].any() else None


def _placed_again(problem: DataPlacement, held: Bools) -> DataPlacement:
    """The instance with replicas that are decided, where work is placed by the goal ``least-change``."""
    left = scenarios.priced(with_replicas_only(problem, held))
    return least_change(left).applied_to(left)


def restarted(problem: DataPlacement, plan: Plan, loss: Loss) -> tuple[DataPlacement, Loss]:
    """The instance after a loss once a plan without copies is carried out, and the loss as counted from there."""
    after = scenarios.carried(problem, plan)
    names = set(loss.work)
    readers = np.array([name in names for name in problem.workloads.labels], np.bool_)
    return after, replace(loss, unavoidable=unavoidable_terms(after, readers))


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
    after_loss=after_loss,
    placed_soon=placed_soon,
    first_stage=first_stage,
    kept_runs=kept_runs,
    kept_replicas=kept_replicas,
    restarted=restarted,
    risk=risk,
    expansion=EXPANSION,
    change_groups=change_groups,
    rolling=Rolling(
        scenarios.carried, scenarios.unhurried, scenarios.with_replicas, today, lambda problem: problem.days, JOINT
    ),
)
