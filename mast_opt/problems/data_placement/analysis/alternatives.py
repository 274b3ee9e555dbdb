"""Alternatives for one workload of a data-placement plan, and broken limits in words."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from mast_opt.core.verdict import Violation
from mast_opt.core.wording import counted, listed
from mast_opt.problems.data_placement.limits import LIMITS
from mast_opt.problems.data_placement.plan import Plan, filled, first_holder
from mast_opt.problems.data_placement.problem import SHARE, Bools, DataPlacement, Ints
from mast_opt.problems.data_placement.wording import cores, quantity, tb
from mast_opt.problems.kind.analysis_hooks import Alternative, Decisions

RULES = ("run", "place", "residency")
"""Constraints of pins, bans, residency and GPU types that a region lacks."""


def now(problem: DataPlacement, plan: Plan, w: int) -> str:
    """``in east on A100``; shares where it is split."""
    p = problem
    rows = np.flatnonzero(plan.run_workload == w)
    if not len(rows):
        return "nowhere"
    where = []
    for row in rows.tolist():
        share = int(plan.run_share[row])
        part = "" if share == SHARE else f"{share / SHARE:.1%} "
        where.append(f"{part}{_cell(p, int(plan.run_region[row]), int(plan.run_type[row]))}")
    return listed(where)


def alternatives(problem: DataPlacement, plan: Plan, w: int) -> tuple[Alternative, ...]:
    """All of it in every region on every type that it accepts: reading remotely what the region lacks, and next to
    copies of that; and left out, where that is priced."""
    p = problem
    rows = np.flatnonzero(plan.run_workload == w)
    whole_in = (int(plan.run_region[rows[0]]), int(plan.run_type[rows[0]])) if _is_whole(plan, rows) else None
    data = p.reads.dataset[p.reads.workload == w]
    freed = _freed(p, w)
    found = []
    for kind in p.options.gpu_type[p.options.workload == w].tolist():
        for r, region in enumerate(p.regions.labels):
            if kind < len(p.gpu_types) and p.option_mgpu[w, kind] and not p.regions.supply_mgpu[r, kind]:
                found.append(Alternative(_cell(p, r, kind), region, None, f"{region} has no {p.gpu_types[kind]}"))
                continue
            lacks = data[~plan.place[data, r]]
            far = _moved(p, plan, w, r, kind, plan.place)
            cell = _cell(p, r, kind)
            if (r, kind) != whole_in:
                words = f"{cell}, reading {_data(p, lacks)} remotely" if len(lacks) else cell
                found.append(Alternative(words, region, far, freed=freed))
            if len(lacks):
                place = plan.place.copy()
                place[lacks, r] = True
                near = _moved(p, plan, w, r, kind, place)
                stored = p.datasets.stored[lacks, r]
                copies = (("new copies of", lacks[~stored]), ("today's copies of", lacks[stored]))
                words = f"{cell}, with {listed([f'{which} {_data(p, some)}' for which, some in copies if len(some)])}"
                found.append(Alternative(words, region, near, freed=freed))
    if p.may_refuse and len(rows):
        found.append(Alternative("left out", "", _moved(p, plan, w, None, 0, plan.place)))
    return tuple(found)


def _freed(problem: DataPlacement, w: int) -> DataPlacement | None:
    """The instance without the workload's pins and bans; None where it has none. With them, its remote reads elsewhere
    are no reads, so they cost nothing and bring nothing."""
    rules = {name: getattr(problem.workloads, name) for name in ("pinned", "forbidden")}
    if not any(rule[w].any() for rule in rules.values()):
        return None
    other = np.arange(len(problem.workloads))[:, None] != w
    return problem.with_columns({f"workloads.{name}": rule & other for name, rule in rules.items()})


def phrase(problem: DataPlacement, violation: Violation) -> str:  # noqa: C901 - one branch for each limit
    """A broken limit: what it is, how large, and by how much it is exceeded."""
    name, index, over, limit = violation.constraint, violation.index, violation.amount, violation.limit
    if name in ("storage", "ingress"):
        what = "storage of" if name == "storage" else "ingress of"
        return f"{what} {index[0]} ({tb(limit)}) would be exceeded by {tb(over)}"
    if name == "link":
        return f"the link from {index[0]} to {index[1]} ({tb(limit)}) would be exceeded by {tb(over)}"
    if name in ("cpu", "quota"):
        what = f"CPU of {index[0]}" if name == "cpu" else f"CPU quota of {index[1]} in {index[0]}"
        return f"{what} ({cores(limit)}) would be exceeded by {cores(over)}"
    if name == "limit":
        most, unit = float(problem.limits[index[0]]), LIMITS[index[0]].unit
        stated = quantity(most, unit) if unit else f"{most:g}"
        return f"the limit on {index[0]} ({stated}) would be exceeded by {quantity(over, violation.unit)}"
    if name == "run":
        return _why_not_there(problem, *index)
    if name == "copies":
        return f"dataset {index[0]} would have {_copies(problem, index[0], over, limit)}"
    if name == "place":
        return f"dataset {index[0]} is {'forbidden in' if not limit else 'pinned to'} {index[1]}"
    if name == "residency":
        return _why_not_resident(problem, index)
    if name in ("local", "remote"):
        if not problem.remote_reads:
            return f"remote reads are forbidden and {index[-1]} lacks {index[1]}"
        return f"no link brings {index[1]} to {index[-1]} for {index[0]}"
    if name in ("copy", "copied"):
        return f"no link brings a copy of {index[0]} to {index[-1]}"
    return str(violation)


def _copies(problem: DataPlacement, dataset: str, over: float, limit: float) -> str:
    """The copies of a dataset that has too few or too many, in words."""
    data, i = problem.datasets, problem.datasets.labels.index(dataset)
    if limit < data.copies_max[i]:
        return f"{counted(limit - over, 'copy', 'copies')}, fewer than its minimum of {limit:g}"
    if limit > data.copies_min[i] or over > limit:
        return f"{counted(limit + over, 'copy', 'copies')}, more than its maximum of {limit:g}"
    return f"a number of copies other than {limit:g}"


def _why_not_there(problem: DataPlacement, workload: str, region: str, kind: str) -> str:
    """Reason why a workload may not run in a region on a GPU type, in words."""
    p = problem
    w, r = p.workloads.labels.index(workload), p.regions.labels.index(region)
    if p.workloads.forbidden[w, r]:
        return f"workload {workload} is forbidden in {region}"
    if not p.ruled[w, r]:
        pins = listed([p.regions.labels[q] for q in np.flatnonzero(p.workloads.pinned[w])])
        return f"workload {workload} is pinned to {pins}"
    return f"{region} has no {kind}"


def _why_not_resident(problem: DataPlacement, index: Sequence[str]) -> str:
    """Reason why residency forbids a dataset in a region, in words."""
    dataset = index[-2]
    held = np.flatnonzero(problem.datasets.residency[problem.datasets.labels.index(dataset)])
    where = listed([problem.regions.labels[r] for r in held])
    may = "stored" if len(index) == 2 else "read"
    return f"dataset {dataset} may be {may} only in {where} (residency)"


def _moved(problem: DataPlacement, plan: Plan, w: int, region: int | None, kind: int, place: Bools) -> Plan:
    """The plan with all of the workload in the region (None: nowhere), and sources for what that needs."""
    p = problem
    run = [column[plan.run_workload != w] for column in plan.rows("run")]
    if region is not None:
        run = appended(run, [w], region, kind, SHARE)
        order = np.argsort(run[0], kind="stable")
        run = [column[order] for column in run]
    if p.links is None:
        return filled(p, place.copy(), run)
    copy = list(plan.rows("copy"))
    remote = [column[plan.remote_workload != w] for column in plan.rows("remote")]
    if region is not None:
        new = np.flatnonzero(place[:, region] & ~plan.place[:, region])
        dataset, source = cheapest_sources(p, p.datasets.stored, new, region).T
        copy = appended(copy, dataset, source, region, SHARE)
        dataset, source = cheapest_sources(p, place, p.reads.dataset[p.reads.workload == w], region).T
        remote = appended(remote, w, dataset, source, region, SHARE)
    return replace(plan, place=place.copy()).with_rows(run=run, copy=copy, remote=remote)


def appended(columns: Sequence[Ints], *more: ArrayLike) -> list[Ints]:
    """Columns of a data-placement plan's relation with further rows; a single value stands for all of them."""
    return [np.append(column, values) for column, values in zip(columns, np.broadcast_arrays(*more), strict=True)]


def cheapest_sources(problem: DataPlacement, held: Bools, datasets: Ints, region: int) -> Ints:
    """(dataset, source) of each dataset that the region lacks, over the cheapest link from a region that holds it, or
    from the first such region where every region reaches every other; datasets that nothing brings are left out, for
    the verifier to find."""
    links = problem.links
    if links is None:
        missing = datasets[~held[datasets, region] & held[datasets].any(axis=1)]
        return np.stack((missing, first_holder(held)[missing]), axis=1)
    into = np.flatnonzero(links.target == region)
    into = into[np.argsort(links.price_usd_per_tb[into], kind="stable")]
    pairs = []
    for i in datasets[~held[datasets, region]].tolist():
        holders = into[held[i, links.source[into]]]
        if len(holders):
            pairs.append((i, int(links.source[holders[0]])))
    return np.array(pairs, np.int64).reshape(-1, 2)


def _is_whole(plan: Plan, rows: Ints) -> bool:
    """Whether a workload runs in one place, undivided."""
    return len(rows) == 1 and int(plan.run_share[rows[0]]) == SHARE


def _cell(problem: DataPlacement, region: int, kind: int) -> str:
    """A region and GPU type in words."""
    on = f" on {problem.gpu_types[kind]}" if kind < len(problem.gpu_types) else ""
    return f"in {problem.regions.labels[region]}{on}"


def _data(problem: DataPlacement, datasets: Ints) -> str:
    """Names of datasets in words."""
    return listed([problem.datasets.labels[i] for i in datasets.tolist()])


def _heaviest(problem: DataPlacement) -> list[int]:
    """Workloads by their GPU demand, the most first."""
    order: list[int] = np.argsort(-problem.demand_mgpu, kind="stable").tolist()
    return order


WORKLOAD_CHOICES = Decisions(
    "workload",
    lambda problem: problem.workloads.labels,
    _heaviest,
    now,
    alternatives,
    phrase,
    lasting=lambda violation: violation.constraint in RULES,
)
