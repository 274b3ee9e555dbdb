"""Scenarios of data placement: the keys that a scenario may have, and the resources that can be added by the unit."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from mast_opt.core.errors import UsageError
from mast_opt.core.units import MB_PER_TB, MILLI
from mast_opt.problems.data_placement.analysis import instance_edits as edits
from mast_opt.problems.data_placement.analysis.losses import readers_of
from mast_opt.problems.data_placement.entities import CurrentRuns
from mast_opt.problems.data_placement.plan import Plan
from mast_opt.problems.data_placement.problem import SHARE, Bools, DataPlacement, Ints
from mast_opt.problems.kind.analysis_hooks import PLAUSIBLE_GROWTH, Change, Resource
from mast_opt.problems.kind.overrides import stated_limit
from mast_opt.problems.kind.scenario_values import amounts, factor, grown, positions, records, reweighted, tier_factors

MOST_DAYS = 100_000
"""Days that copies may take at most, in a scenario or a period."""


def _links(problem: DataPlacement) -> tuple[str, ...]:
    """Links between regions by name, none without a network."""
    if problem.links is None:
        return ()
    ends = zip(problem.links.source.tolist(), problem.links.target.tolist())
    return tuple(f"{problem.regions.labels[q]} → {problem.regions.labels[r]}" for q, r in ends)


def _supplied(problem: DataPlacement) -> list[tuple[int, int]]:
    """(region, GPU type) pairs that have a supply of GPUs."""
    region, kind = np.nonzero(problem.regions.supply_mgpu)
    return list(zip(region.tolist(), kind.tolist()))


def _gpu_places(problem: DataPlacement) -> tuple[str, ...]:
    """Regions and GPU types with a supply, in words."""
    return tuple(f"{problem.regions.labels[r]} {problem.gpu_types[k]}" for r, k in _supplied(problem))


def _more_gpus(problem: DataPlacement, at: int, units: int) -> DataPlacement:
    """The data placement with more GPUs of a type in a region."""
    supply = problem.regions.supply_mgpu.copy()
    supply[_supplied(problem)[at]] += 1000 * units
    return replace(problem, regions=replace(problem.regions, supply_mgpu=supply))


def _limited(problem: DataPlacement) -> tuple[str, ...]:
    """Regions whose ingress is limited."""
    return tuple(problem.regions.labels[r] for r in np.flatnonzero(problem.regions.ingress_limited))


RESOURCES = (
    Resource("storage", "TB", lambda p: p.regions.labels, lambda p, at, units: edits.bought_storage(p, {at: units})),
    Resource("cpu", "core", lambda p: p.regions.labels, lambda p, at, units: edits.more_cores(p, {at: units})),
    Resource("gpus", "GPU", _gpu_places, _more_gpus),
    Resource("ingress", "TB a day", _limited, lambda p, at, units: edits.more_ingress(p, {at: units})),
    Resource("link", "TB a day", _links, lambda p, at, units: edits.more_link(p, {at: units})),
)


def lose_regions(problem: DataPlacement, value: object) -> DataPlacement:
    """The regions hold, run and send nothing, and their replicas are gone; a dataset needs no more copies than there
    are regions left for it. Work that is pinned there, or whose data is allowed nowhere else, cannot run.

    Data of which no replica is left is taken out by ``losses.settle_loss``, once it is known which replicas are hit."""
    p = problem
    lost = np.zeros(len(p.regions), np.bool_)
    lost[positions("lose_regions", "region", p.regions.labels, value)] = True
    forbidden: Bools = p.datasets.forbidden | lost
    left = (~(p.closed | lost)).sum(axis=1)
    links = p.links
    if links is not None:
        cut = lost[links.source] | lost[links.target]
        links = replace(links, capacity_mb_per_day=np.where(cut, 0, links.capacity_mb_per_day))
    return without_data(p, left == 0).with_columns(
        {
            "regions.storage_mb": np.where(lost, 0, p.regions.storage_mb),
            "regions.cpu_mcores": np.where(lost, 0, p.regions.cpu_mcores),
            "regions.supply_mgpu": np.where(lost[:, None], 0, p.regions.supply_mgpu),
            "datasets.stored": p.datasets.stored & ~lost,
            "datasets.pinned": p.datasets.pinned & ~lost,
            "datasets.forbidden": forbidden,
            "workloads.forbidden": p.workloads.forbidden | lost | (readers_of(p, left == 0))[:, None],
            "datasets.copies_min": np.minimum(p.datasets.copies_min, left),
            "links": links,
        }
    )


def without_data(problem: DataPlacement, lost: Bools) -> DataPlacement:
    """Work that reads a lost dataset runs nowhere."""
    return problem.with_columns(
        {"workloads.forbidden": problem.workloads.forbidden | readers_of(problem, lost)[:, None]}
    )


def grow_demand(problem: DataPlacement, value: object) -> DataPlacement:
    """GPUs, cores and reads of all work times a factor, or another one for the work of some tiers; rounded up."""
    p = problem
    each = tier_factors("grow_demand", p.tiers, value)[p.workloads.tier]
    return p.with_columns(
        {
            "workloads.cpu_mcores": grown("grow_demand", p.workloads.cpu_mcores, each),
            "options.mgpu": grown("grow_demand", p.options.mgpu, each[p.options.workload]),
            "reads.mb_per_day": grown("grow_demand", p.reads.mb_per_day, each[p.reads.workload]),
        }
    )


def add_gpus(problem: DataPlacement, value: object) -> DataPlacement:
    """The instance with more or fewer GPUs of a type in a region. Raises UsageError if that leaves fewer than none."""
    supply = problem.regions.supply_mgpu.copy()
    axes = {"region": problem.regions.labels, "gpu_type": problem.gpu_types}
    for record in records("add_gpus", axes, "gpus", value):
        supply[record.at["region"], record.at["gpu_type"]] += round(record.amount * MILLI)
    if (supply < 0).any():
        r, k = (int(at[0]) for at in np.nonzero(supply < 0))
        raise UsageError(f"add_gpus takes more {problem.gpu_types[k]} from {problem.regions.labels[r]} than there are")
    return replace(problem, regions=replace(problem.regions, supply_mgpu=supply))


def add_storage_tb(problem: DataPlacement, value: object) -> DataPlacement:
    """The instance with more or less storage in regions, in TB."""
    return problem.with_columns(
        {"regions.storage_mb": _added("add_storage_tb", problem, problem.regions.storage_mb, MB_PER_TB, value)}
    )


def add_cpu_cores(problem: DataPlacement, value: object) -> DataPlacement:
    """The instance with more or less CPU in regions, in cores."""
    return problem.with_columns(
        {"regions.cpu_mcores": _added("add_cpu_cores", problem, problem.regions.cpu_mcores, MILLI, value)}
    )


def add_ingress(problem: DataPlacement, value: object) -> DataPlacement:
    """The instance with other limits on data copied into regions, in TB a day; no limit stays no limit."""
    daily = np.where(problem.regions.ingress_limited, problem.regions.ingress_mb_per_day, 0)
    more = _added("add_ingress_tb_per_day", problem, daily, MB_PER_TB, value)
    return problem.with_columns(
        {
            "regions.ingress_mb_per_day": np.where(
                problem.regions.ingress_limited, more, problem.regions.ingress_mb_per_day
            )
        }
    )


def _added(key: str, problem: DataPlacement, values: Ints, per_unit: int, value: object) -> Ints:
    """Amounts of regions with what a scenario adds. Raises UsageError below 0."""
    more = values.copy()
    for r, amount in amounts(key, "region", problem.regions.labels, value).items():
        more[r] += round(amount * per_unit)
        if more[r] < 0:
            raise UsageError(f"{key} takes more from {problem.regions.labels[r]} than there is")
    return more


def scale_link_prices(problem: DataPlacement, value: object) -> DataPlacement:
    """The instance with all prices of links multiplied. Raises UsageError without a table of links."""
    times = factor("scale_link_prices", value)
    if problem.links is None:
        raise UsageError("scale_link_prices: the instance has no table of links, so its links have no price")
    links = replace(problem.links, price_usd_per_tb=problem.links.price_usd_per_tb * times)
    return replace(problem, links=links)


def pin(problem: DataPlacement, value: object) -> DataPlacement:
    """The instance with these datasets pinned to these regions."""
    return problem.with_columns({"datasets.pinned": problem.datasets.pinned | _cells("pin", problem, value)})


def forbid(problem: DataPlacement, value: object) -> DataPlacement:
    """The instance with these datasets forbidden in these regions."""
    return problem.with_columns({"datasets.forbidden": problem.datasets.forbidden | _cells("forbid", problem, value)})


def _cells(key: str, problem: DataPlacement, value: object) -> Bools:
    """Grid [I, R] of a scenario's pairs of dataset and region."""
    grid = np.zeros(problem.datasets.stored.shape, np.bool_)
    for record in records(key, {"dataset": problem.datasets.labels, "region": problem.regions.labels}, None, value):
        grid[record.at["dataset"], record.at["region"]] = True
    return grid


def limits(problem: DataPlacement, value: object) -> DataPlacement:
    """The instance with other limits on a whole plan; "none" gives one up."""
    if not isinstance(value, Mapping) or not value:
        raise UsageError(f"limits is {value!r}; expected a table, as in limits = {{ copied_tb = 12 }}")
    return problem.with_limits({name: stated_limit(name, most) for name, most in value.items()})


def days(problem: DataPlacement, value: object) -> DataPlacement:
    """The instance with another time for the copies."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MOST_DAYS:
        raise UsageError(f"days is {value!r}; expected a number of days above 0")
    return replace(problem, days=Fraction(str(value)))


def carried(problem: DataPlacement, plan: Plan) -> DataPlacement:
    """The instance once the plan is carried out: its replicas and runs are the present state. Work of regions that are
    lost, and that the plan does not run, is still listed where it ran."""
    p, runs, now = problem, plan.running(), problem.current_runs
    lost = np.flatnonzero(p.gone[now.region])
    if lost.size:
        left = np.full(len(p.workloads), SHARE)
        np.subtract.at(left, runs.workload, runs.share)
        down = []
        for at in lost.tolist():
            w = now.workload[at]
            down.append(min(int(now.share[at]), max(int(left[w]), 0)))
            left[w] -= down[-1]
        rows = ((now.workload[lost], now.region[lost], now.gpu_type[lost], np.array(down)), plan.rows("run"))
        joined = [np.concatenate(columns) for columns in zip(*rows, strict=True)]
        order = np.lexsort(joined[2::-1])
        runs = CurrentRuns(*(column[order][joined[3][order] > 0] for column in joined))
    return replace(p, datasets=replace(p.datasets, stored=plan.place), current_runs=runs)


def unhurried(problem: DataPlacement) -> DataPlacement:
    """The instance whose copies take as long as they like: for the replicas that it would have then."""
    return replace(problem, days=Fraction(MOST_DAYS))


def with_replicas(problem: DataPlacement, plan: Plan) -> DataPlacement:
    """The instance that must have every replica of the plan, on top of its own rules."""
    p = problem
    return replace(p, datasets=replace(p.datasets, pinned=p.datasets.pinned | (plan.place & ~p.closed)))


CHANGES = {
    "lose_regions": Change(lose_regions, 'lose_regions = ["east"]', "regions that are gone with all that they hold"),
    "grow_demand": Change(
        grow_demand,
        "grow_demand = { all = 1.2, 0 = 1.5 }",
        "GPUs, cores and reads times a factor, of all or by tier",
        plausible=PLAUSIBLE_GROWTH,
    ),
    "add_gpus": Change(
        add_gpus, 'add_gpus = [{ region = "east", gpu_type = "H100", gpus = 64 }]', "new GPUs; below 0 takes away"
    ),
    "add_storage_tb": Change(add_storage_tb, "add_storage_tb = { east = 500 }", "more storage; below 0 takes away"),
    "add_cpu_cores": Change(add_cpu_cores, "add_cpu_cores = { east = 2000 }", "more cores; below 0 takes away"),
    "add_ingress_tb_per_day": Change(
        add_ingress, "add_ingress_tb_per_day = { east = 10 }", "more ingress, where it is limited at all"
    ),
    "scale_link_prices": Change(scale_link_prices, "scale_link_prices = 2.0", "prices of all links times a factor"),
    "weights": Change(reweighted, "weights = { storage = 0.5 }", "other weights of terms of the objective"),
    "limits": Change(limits, "limits = { copied_tb = 12 }", 'other limits on a whole plan; "none" gives one up'),
    "days": Change(days, "days = 30", "days that the copies may take"),
    "pin": Change(pin, 'pin = [{ dataset = "logs", region = "east" }]', "replicas that must be there"),
    "forbid": Change(forbid, 'forbid = [{ dataset = "logs", region = "east" }]', "replicas that must not be there"),
}


def priced(problem: DataPlacement) -> DataPlacement:
    """The instance with work that cannot be served priced instead of forbidden."""
    return replace(problem, may_refuse=True)


def moved(problem: DataPlacement, scenario: DataPlacement, before: Plan, after: Plan) -> Mapping[str, float]:
    """Bytes of replicas that the second plan has and the first has not, and workloads that run elsewhere."""
    new = (after.place & ~before.place).sum(axis=1)
    volume = sum(int(size) * int(count) for size, count in zip(problem.datasets.size_mb.tolist(), new.tolist()))
    ran = _runs(before)
    elsewhere = {cell[0] for cell, share in _runs(after).items() if share > ran.get(cell, 0)}
    return {"moved_tb": volume / MB_PER_TB, "moved_workloads": float(len(elsewhere))}


def _runs(plan: Plan) -> dict[tuple[int, ...], int]:
    """(workload, region, type) → share that runs there under a data-placement plan."""
    *cell, share = (column.tolist() for column in plan.rows("run"))
    return dict(zip(zip(*cell, strict=True), share, strict=True))
