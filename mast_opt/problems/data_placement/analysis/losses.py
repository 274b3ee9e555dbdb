"""Loss of a region in data placement: data of which no replica is left, work that reads it, and the risk of a plan."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mast_opt.core.units import MB_PER_TB, MILLI
from mast_opt.problems.data_placement.analysis.current_state import complete
from mast_opt.problems.data_placement.plan import Plan, today
from mast_opt.problems.data_placement.problem import SHARE, Bools, DataPlacement
from mast_opt.problems.data_placement.verification.verifier import verify
from mast_opt.problems.kind.analysis_hooks import Loss, RegionRisk, Risk, SingleCopy
from mast_opt.problems.kind.scenario_values import positions


def settle_loss(
    problem: DataPlacement, scenario: DataPlacement, changes: Mapping[str, Any], plan: Plan | None
) -> tuple[DataPlacement, Loss]:
    """The scenario without the data that its lost regions take with them, and that loss.

    The replicas that are left are those of the plan where one is given: the regions are lost after it is carried
    out. Otherwise they are today's. Of what is lost in part, no more copies are needed than are left; of the rest, no
    more than there are regions left for it. A lost dataset is stored nowhere, no pin brings it back, and work that
    reads it runs nowhere. The current runs are also those of the plan where one is given, so that moved work is
    counted from it.

    Args:
        problem: the instance before the scenario.
        scenario: the instance after all changes, in which lost regions hold nothing.
        changes: the scenario's keys and values.
        plan: the plan whose replicas and runs are hit; None for today's.
    """
    if "lose_regions" not in changes:
        return scenario, Loss()
    away = np.zeros(len(problem.regions), np.bool_)
    away[positions("lose_regions", "region", problem.regions.labels, changes["lose_regions"])] = True
    replicas = problem.datasets.stored if plan is None else plan.place
    lost = lost_datasets(problem, scenario.closed, replicas, away)
    readers, taken = readers_of(problem, lost), np.any(replicas & away, axis=1)
    asked, still = scenario.datasets.copies_min, np.sum(~scenario.closed, axis=1)
    most = np.where(still < np.sum(~problem.closed, axis=1), still, asked)
    most = np.where(taken, np.sum(replicas & ~away, axis=1), most)
    copies_min = np.where(lost, 0, np.minimum(asked, np.maximum(most, 1)))
    fewer = np.flatnonzero(~lost & (copies_min < asked))
    settled = scenario.with_columns(
        {
            "datasets.stored": replicas & ~away & ~lost[:, None],
            "datasets.pinned": scenario.datasets.pinned & ~lost[:, None],
            "datasets.forbidden": scenario.datasets.forbidden | lost[:, None],
            "datasets.copies_min": copies_min,
            "workloads.pinned": scenario.workloads.pinned & ~readers[:, None],
            "workloads.forbidden": scenario.workloads.forbidden | readers[:, None],
        }
    )
    settled = settled if plan is None else replace(settled, current_runs=plan.running())
    loss = replace(loss_of(problem, lost), fewer_copies=tuple(problem.datasets.labels[i] for i in fewer))
    return settled, replace(loss, unavoidable=unavoidable_terms(settled, readers))


def unavoidable_terms(p: DataPlacement, readers: Bools) -> dict[str, float]:
    """Costs, by term, of work that runs nowhere: its demand is not served, and it leaves where it runs today."""
    weight = p.tier_weight[p.workloads.tier] * p.demand_mgpu
    gone = readers[p.current_runs.workload]
    left = p.demand_mgpu[p.current_runs.workload[gone]] * p.current_runs.share[gone] / SHARE
    whole, items = float(p.demand_mgpu.sum()), len(p.datasets) + len(p.workloads)
    return {
        "unserved": float(weight[readers].sum() / weight.sum()) if weight.any() else 0.0,
        "moved_work": float(left.sum()) / whole if whole else 0.0,
        "moved_items": float(p.current_runs.share[gone].sum()) / SHARE / items if items else 0.0,
    }


def lost_datasets(problem: DataPlacement, closed: Bools, replicas: Bools, away: Bools) -> Bools:
    """Mask [I] of the datasets that are gone with these regions.

    It is if it has replicas and all of them are there, or if the instance lets some region hold it and ``closed``
    leaves none. A dataset without any replica comes from outside, so no region takes it along.

    Args:
        problem: the instance before the loss.
        closed: [I, R] where no replica may be after the loss; the lost regions are among these.
        replicas: [I, R] what is stored before the loss.
        away: [R] the lost regions.
    """
    left = replicas & ~away
    no_replica = np.any(replicas, axis=1) > np.any(left, axis=1)
    no_region = np.all(closed, axis=1) > np.all(problem.closed, axis=1)
    lost: Bools = np.logical_or(no_replica, no_region)
    return lost


def readers_of(problem: DataPlacement, datasets: Bools) -> Bools:
    """Mask [W] of the workloads that read any of the datasets."""
    readers = np.zeros(len(problem.workloads), np.bool_)
    readers[problem.reads.workload[datasets[problem.reads.dataset]]] = True
    return readers


def loss_of(problem: DataPlacement, lost: Bools) -> Loss:
    """The lost datasets, their size, and the work that reads them, by name, with its GPUs."""
    readers = readers_of(problem, lost)
    return Loss(
        datasets=tuple(problem.datasets.labels[i] for i in np.flatnonzero(lost)),
        tb=sum(problem.datasets.size_mb[lost].tolist()) / MB_PER_TB,
        work=tuple(problem.workloads.labels[w] for w in np.flatnonzero(readers)),
        gpus=sum(problem.fewest_mgpu[readers].tolist()) / MILLI,
    )


def adapted(scenario: DataPlacement, plan: Plan) -> Plan:
    """The plan's decisions as a plan of the scenario: what is stored there already needs no copy, and regions that are
    gone hold, run and send nothing."""
    gone, stored = scenario.gone, scenario.datasets.stored
    kept = {
        "run": ~gone[plan.run_region],
        "copy": ~(stored[plan.copy_dataset, plan.copy_target] | gone[plan.copy_target] | gone[plan.copy_source]),
        "remote": ~(gone[plan.remote_target] | gone[plan.remote_source]),
    }
    left = plan.with_rows(**{name: [column[rows] for column in plan.rows(name)] for name, rows in kept.items()})
    return replace(left, place=plan.place & ~gone)


def placed_soon(problem: DataPlacement, plan: Plan) -> Plan:
    """A plan after a loss, found without a solve: what is left of the plan, and other work where all its data is.

    Work that breaks a limit where it is has to wait. Of waiting work the most important is placed first, then the
    largest, each where it lacks the fewest GPUs. Nothing is placed where that breaks a limit.
    """
    left = adapted(problem, plan)
    broken = {one.index[0] for one in verify(problem, left).violations if one.index}
    left = _without(left, np.array([name in broken for name in problem.workloads.labels], np.bool_))
    found = _with_waiting(problem, left)
    return found if verify(problem, found).ok else left


def _without(plan: Plan, work: Bools) -> Plan:
    """The plan without the runs and remote reads of some work."""
    rows = {"run": work[plan.run_workload], "remote": work[plan.remote_workload]}
    return plan.with_rows(**{name: [column[~out] for column in plan.rows(name)] for name, out in rows.items()})


def _with_waiting(problem: DataPlacement, plan: Plan) -> Plan:
    """The plan with work that runs in part or not at all placed whole, as far as data and cores allow."""
    p, work, option = problem, problem.workloads, problem.options
    free, cores = np.pad(p.regions.supply_mgpu, ((0, 0), (0, 1))).astype(float), p.regions.cpu_mcores.astype(float)
    share = plan.run_share / SHARE
    np.add.at(free, (plan.run_region, plan.run_type), -share * p.option_mgpu[plan.run_workload, plan.run_type])
    np.add.at(cores, plan.run_region, -share * work.cpu_mcores[plan.run_workload])
    fits = p.option_regions.copy()
    for w, i in zip(p.reads.workload.tolist(), p.reads.dataset.tolist(), strict=True):
        fits[option.workload == w] &= plan.place[i]
    waits = np.bincount(plan.run_workload, plan.run_share, len(work)) < SHARE
    rows = []
    for w in sorted(np.flatnonzero(waits).tolist(), key=lambda w: (work.tier[w], -p.fewest_mgpu[w])):
        at, r = np.nonzero(fits & (option.workload == w)[:, None] & (cores >= work.cpu_mcores[w]))
        if not len(at):
            waits[w] = False
            continue
        room = free[r, option.gpu_type[at]]
        lacks = np.maximum(option.mgpu[at] - np.maximum(room, 0), 0)
        best = np.lexsort((option.mgpu[at] - room, lacks))[0]
        rows.append((w, r[best], option.gpu_type[at[best]], SHARE))
        free[rows[-1][1:3]] -= option.mgpu[at[best]]
        cores[r[best]] -= work.cpu_mcores[w]
    kept = _without(plan, waits)
    every = np.concatenate([np.stack(kept.rows("run"), axis=1), np.array(rows, np.int64).reshape(-1, 4)])
    return kept.with_rows(run=list(every[np.lexsort(every.T[::-1])].T.copy()))


def risk(problem: DataPlacement, plan: Plan | None) -> Risk:
    """Find what each region that is not lost holds alone, under a plan or (without one) today."""
    p = problem
    place = p.datasets.stored if plan is None else plan.place
    runs = today(p) if plan is None else plan
    regions = tuple(_region(p, place, runs, r) for r in np.flatnonzero(~p.gone).tolist())
    return Risk(
        of="today" if plan is None else "plan",
        complete=plan is not None or complete(p),
        gpus=sum(p.fewest_mgpu.tolist()) / MILLI,
        single_copies=_single_copies(p, place),
        regions=regions,
    )


def _single_copies(problem: DataPlacement, place: Bools) -> tuple[SingleCopy, ...]:
    """Those whose readers need most GPUs first."""
    p = problem
    order = np.argsort(p.reads.dataset, kind="stable")
    readers = p.reads.workload[order]
    start = np.searchsorted(p.reads.dataset[order], np.arange(len(p.datasets) + 1))
    found = []
    for i in np.flatnonzero(np.equal(place.sum(axis=1), 1)).tolist():
        work = readers[start[i] : start[i + 1]].tolist()
        found.append(
            SingleCopy(
                dataset=p.datasets.labels[i],
                region=p.regions.labels[int(place[i].argmax())],
                tb=int(p.datasets.size_mb[i]) / MB_PER_TB,
                work=tuple(p.workloads.labels[w] for w in work),
                gpus=sum(int(p.fewest_mgpu[w]) for w in work) / MILLI,
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.gpus, -one.tb)))


def _region(problem: DataPlacement, place: Bools, runs: Plan | None, r: int) -> RegionRisk:
    """Risk of one region: datasets and work that are lost with it, and GPUs that run there."""
    p = problem
    away = np.equal(np.arange(len(p.regions)), r)
    lost = lost_datasets(p, p.closed | away, place, away)
    running: tuple[str, ...] | None = None
    gpus: float | None = None
    if runs is not None:
        here = np.flatnonzero((runs.run_region == r) & (runs.run_share > 0))
        running = tuple(p.workloads.labels[w] for w in np.unique(runs.run_workload[here]))
        each = p.option_mgpu[runs.run_workload[here], runs.run_type[here]].tolist()
        total: int = sum(need * share for need, share in zip(each, runs.run_share[here].tolist()))
        gpus = total / SHARE / MILLI
    return RegionRisk(
        region=p.regions.labels[r],
        running=running,
        running_gpus=gpus,
        loss=loss_of(p, lost),
    )
