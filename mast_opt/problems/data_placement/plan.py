"""A data-placement plan: replicas, runs, sources of copies and remote reads; derived values; the current plan."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import OTHER_INSTANCE, Arrays, amounts, flags, positions
from mast_opt.core.errors import PlanError
from mast_opt.core.units import MILLI
from mast_opt.core.wording import NOTICED
from mast_opt.problems.data_placement.entities import CurrentRuns
from mast_opt.problems.data_placement.problem import SHARE, Bools, DataPlacement, Ints
from mast_opt.problems.kind.problem_data import Decisions


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Decisions):
    """Decisions of a data placement. Shares are integers out of ``problem.SHARE``; work without a run is not served.

    Raises:
        PlanError: arrays of another type, or that do not fit one another.
    """

    place: Bools
    """[I, R] which region holds a replica after the plan."""

    run_workload: Ints
    """[runs] ascending; one entry per (workload, region, type) with a positive share."""
    run_region: Ints
    run_type: Ints
    """[runs] 0 to K−1, or K for work without GPUs."""
    run_share: Ints

    copy_dataset: Ints
    """[copies] the dataset of a new replica; uploads of datasets that are stored nowhere are not listed."""
    copy_source: Ints
    copy_target: Ints
    copy_share: Ints

    remote_workload: Ints
    """[remote reads] a workload whose share ``remote_share`` reads a dataset from another region."""
    remote_dataset: Ints
    remote_source: Ints
    remote_target: Ints
    remote_share: Ints

    def __post_init__(self) -> None:
        check = Arrays(self)
        check.take(*COLUMNS)
        if check.faults:
            raise PlanError(check.faults)

    def rows(self, relation: str) -> tuple[Ints, ...]:
        """The columns of a relation, ``run``, ``copy`` or ``remote``, in the order of the fields."""
        return tuple(getattr(self, name) for name in RELATIONS[relation])

    def with_rows(self, **rows: Sequence[Ints]) -> "Plan":
        """The plan with other columns of some relations."""
        columns = {name: column for relation, found in rows.items() for name, column in zip(RELATIONS[relation], found)}
        return replace(self, **columns)  # type: ignore[arg-type]

    def running(self) -> CurrentRuns:
        """The runs, as an instance states those of today."""
        return CurrentRuns(*(column[self.run_share > 0] for column in self.rows("run")))


RELATIONS = {
    "run": ("run_workload", "run_region", "run_type", "run_share"),
    "copy": ("copy_dataset", "copy_source", "copy_target", "copy_share"),
    "remote": ("remote_workload", "remote_dataset", "remote_source", "remote_target", "remote_share"),
}
COLUMNS = (
    flags("place", "datasets", "regions"),
    *(amounts(name, relation, least=None) for relation, names in RELATIONS.items() for name in names),
)


def check_plan(problem: DataPlacement, plan: Plan) -> None:
    """Raises PlanError for a plan of another instance: a position that the problem does not have."""
    axes = {name: len(getattr(problem, name)) for name in ("datasets", "regions", "workloads", "gpu_types")}
    check = Arrays(plan, axes)
    check.take(flags("place", "datasets", "regions"))
    into = {"workload": "workloads", "dataset": "datasets", "type": "gpu_types"}
    for column in COLUMNS[1:]:
        name = column.name.partition("_")[2]
        if name != "share":
            axis = into.get(name, "regions")
            check.take(positions(column.name, str(column.shape[0]), axis, beyond=int(name == "type")))
    if check.faults:
        raise PlanError(check.faults, OTHER_INSTANCE)


def gpu_demand(problem: DataPlacement, plan: Plan) -> NDArray[np.float64]:
    """[R, K, P] GPUs asked by work of tier ≤ p, in milli-GPUs."""
    shape = (len(problem.regions), len(problem.gpu_types) + 1, len(problem.tiers))
    asked = np.zeros(shape)
    amount = problem.option_mgpu[plan.run_workload, plan.run_type] * plan.run_share / SHARE
    np.add.at(asked, (plan.run_region, plan.run_type, problem.workloads.tier[plan.run_workload]), amount)
    return np.cumsum(asked, axis=2)[:, :-1]


def filled_mb(problem: DataPlacement, plan: Plan) -> NDArray[Any]:
    """[R] MB of replicas, and of outputs of the work that runs there."""
    output = problem.workloads.output_mb[plan.run_workload] * plan.run_share / SHARE
    return np.bincount(plan.run_region, output, len(problem.regions)) + problem.datasets.size_mb @ plan.place


def used_mcores(problem: DataPlacement, plan: Plan) -> NDArray[Any]:
    """[R] millicores of the work that runs there."""
    used = problem.workloads.cpu_mcores[plan.run_workload] * plan.run_share / SHARE
    return np.bincount(plan.run_region, used, len(problem.regions))


def shown_demand(problem: DataPlacement, plan: Plan) -> NDArray[np.float64]:
    """[R, K, P] demand as in ``gpu_demand``; where it exceeds the supply by what rounds to nothing, the supply."""
    asked, supply = gpu_demand(problem, plan), problem.regions.supply_mgpu[:, :, None]
    over = asked - supply
    return np.where((supply > 0) & (over > 0) & (over < NOTICED * MILLI), supply, asked)


def lacking_gpus(problem: DataPlacement, plan: Plan) -> NDArray[np.float64]:
    """[R, K] GPUs that a plan's work asks for beyond the supply; what rounds to nothing is nothing."""
    supply = problem.regions.supply_mgpu
    return np.where(supply == 0, 0.0, np.maximum(shown_demand(problem, plan)[:, :, -1] - supply, 0.0) / MILLI)


def first_holder(held: Bools) -> Ints:
    """[I] the first region that holds each dataset, or −1 where none does."""
    return np.where(held.any(axis=1), held.argmax(axis=1), -1)


def fill_copies(problem: DataPlacement, place: Bools) -> tuple[Ints, Ints, Ints, Ints]:
    """(dataset, source, target, share) of every new replica, from the first region that holds it today."""
    dataset, target = np.nonzero(place & ~problem.datasets.stored)
    source = first_holder(problem.datasets.stored)[dataset]
    kept = source >= 0
    dataset, source, target = dataset[kept], source[kept], target[kept]
    return dataset, source, target, np.full(len(dataset), SHARE, np.int64)


def read_positions(problem: DataPlacement, workload: Ints, dataset: Ints) -> Ints:
    """[·] the read of a dataset by a workload, as a position among the problem's; −1 where there is none."""
    key = problem.reads.workload * len(problem.datasets) + problem.reads.dataset
    order = np.argsort(key, kind="stable")
    wanted = workload * len(problem.datasets) + dataset
    at = np.searchsorted(key[order], wanted)
    found = np.append(key[order], -1)[at] == wanted
    return np.where(found, np.append(order, -1)[at], -1)


def fill_remote(
    problem: DataPlacement, place: Bools, workload: Ints, region: Ints, kind: Ints, share: Ints
) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """(workload, dataset, source, target, share) of every remote read, from the first region of the plan that
    holds the dataset."""
    regions = len(problem.regions)
    pair, at = np.unique(workload * regions + region, return_inverse=True)
    total = np.bincount(at, weights=share, minlength=len(pair)).astype(np.int64)
    pair_workload, pair_region = pair // regions, pair % regions
    reads = np.bincount(problem.reads.workload, minlength=len(problem.workloads))
    start = np.cumsum(reads) - reads
    count = reads[pair_workload]
    entry = np.repeat(np.arange(len(pair)), count)
    ends = np.cumsum(count)
    read = np.arange(len(entry)) - np.repeat(ends - count, count) + np.repeat(start[pair_workload], count)
    dataset, target = problem.reads.dataset[read], pair_region[entry]
    far = np.flatnonzero(~place[dataset, target])
    dataset, target, entry = dataset[far], target[far], entry[far]
    return pair_workload[entry], dataset, first_holder(place)[dataset], target, total[entry]


def possible_remote(problem: DataPlacement, place: Bools, run: Sequence[Ints]) -> list[Ints]:
    """Remote reads of ``fill_remote`` but of what no region holds; none where remote reads are forbidden."""
    remote = fill_remote(problem, place, *run)
    possible = (remote[2] >= 0) & problem.remote_reads
    return [column[possible] for column in remote]


def filled(problem: DataPlacement, place: Bools, run: Sequence[Ints]) -> Plan:
    """Plan with these replicas and runs; copies and remote reads come from the first region that holds the dataset.

    Where that is no region, or where remote reads are forbidden, the verifier finds that the run cannot read.

    Args:
        problem: the instance.
        place: [I, R] which region holds a replica after the plan.
        run: the arrays ``run_workload`` (ascending), ``run_region``, ``run_type`` and ``run_share`` of the plan. Work
            that has no entry is not served.
    """
    rows = (*run, *fill_copies(problem, place), *possible_remote(problem, place, run))
    return Plan(place, *rows)


def today(problem: DataPlacement) -> Plan | None:
    """Present replicas and runs as a plan; None if the instance does not say where work runs.

    Work of ``gone`` regions runs nowhere. GPU types that are not stated are those of ``assumed_types``. A dataset that
    a region does not hold is read from the first region that holds it, if any does and remote reads are allowed,
    whatever the links allow. So the plan may break limits.
    """
    p = problem
    if not len(p.current_runs):
        return None
    kind, there = assumed_types(p), ~p.gone[p.current_runs.region]
    runs = (p.current_runs.workload, p.current_runs.region, kind, p.current_runs.share)
    workload, region, kind, shares = (column[there] for column in runs)
    grid = (len(p.workloads), len(p.regions), len(p.gpu_types) + 1)
    cell, at = np.unique(np.ravel_multi_index((workload, region, kind), grid), return_inverse=True)
    share = np.zeros(len(cell), np.int64)
    np.add.at(share, at, shares)
    workload, region, kind = np.unravel_index(cell[share > 0], grid)
    share = share[share > 0]
    run = workload, region, kind, share
    none = [np.zeros(0, np.int64) for _ in RELATIONS["copy"]]
    return Plan(p.datasets.stored.copy(), *run, *none, *possible_remote(p, p.datasets.stored, run))


def assumed_types(problem: DataPlacement, plan: Plan | None = None) -> Ints:
    """[runs of today] the GPU type of each, guessed where a run states none although its workload needs one.

    It is taken to be on the type that the plan (if one is given) uses in the same region; else on the first acceptable
    one that the region has; else on the first acceptable one.
    """
    p, none = problem, len(problem.gpu_types)
    kinds = p.current_runs.gpu_type.copy()
    unknown = np.flatnonzero(kinds == none).tolist()
    accepted: dict[int, list[int]] = defaultdict(list)
    for w, k in zip(p.options.workload.tolist(), p.options.gpu_type.tolist(), strict=True) if unknown else ():
        accepted[w].append(k)
    planned: dict[tuple[int, int], int] = {}
    if plan is not None and unknown:
        runs = (plan.run_workload.tolist(), plan.run_region.tolist(), plan.run_type.tolist())
        for w, r, k in zip(*runs, strict=True):
            planned.setdefault((w, r), k)
    for at in unknown:
        w, r = int(p.current_runs.workload[at]), int(p.current_runs.region[at])
        if none not in accepted[w]:
            there = [k for k in accepted[w] if p.regions.supply_mgpu[r, k] > 0]
            kinds[at] = planned.get((w, r), [*there, *accepted[w]][0])
    return kinds
