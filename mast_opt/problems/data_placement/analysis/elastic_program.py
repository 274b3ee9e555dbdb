"""Elastic program of data placement: every hard limit in words, as rows and columns, to be moved or given up.

Capacity limits of data placement for conflict analysis: storage, CPU, quotas, ingress, links, numbers of copies.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import attrgetter

import numpy as np

from mast_opt.core.arrays import FloatArray, IntArray
from mast_opt.core.units import MB_PER_TB
from mast_opt.core.wording import listed, named
from mast_opt.problems.data_placement.analysis import instance_edits as edits
from mast_opt.problems.data_placement.analysis.elastic_view import View, names_at
from mast_opt.problems.data_placement.analysis.rule_limits import missing_types, rules
from mast_opt.problems.data_placement.formulation.formulation import base, limit_scale
from mast_opt.problems.data_placement.limits import LIMITS
from mast_opt.problems.data_placement.problem import DataPlacement, Ints
from mast_opt.problems.data_placement.wording import copies, cores, days, quantity, tb
from mast_opt.problems.kind.analysis_hooks import ElasticLimits, ElasticProgram, row_limits
from mast_opt.problems.mip import Mip, frozen
from mast_opt.problems.mip.transforms import Extension, extended

COPY = 1.0
"""Cost of a copy more or less in a repair, where making a region's storage, cores, quota, ingress or a link larger by
that of an average one costs 1."""

SEVERAL = 4
"""Limits of which the sum is stated as well."""


@dataclass(frozen=True)
class Measure:
    """Unit of a capacity."""

    unit: str
    base: int
    """Base units in one of these."""
    text: Callable[[float], str]
    """An amount in base units, in words."""
    days: float = 1.0
    """Factor from the stated amount to that of the row."""


TB, CORES = Measure("TB", MB_PER_TB, tb), Measure("cores", 1000, cores)


def amounts(view: View) -> tuple[ElasticLimits, ...]:
    """Elastic limits that state amounts: capacities and numbers of replicas."""
    capacities = (storage(view), cpu(view), quota(view), ingress(view), *link(view))
    return (*capacities, *whole_plan(view), copies_max(view), copies_min(view))


def storage(view: View) -> ElasticLimits:
    """Described as what is usable; advice is in whole TB of all storage, headroom included, as the table has it."""
    p = view.p

    def name(r: int) -> str:
        if p.regions.headroom_milli[r] == 1000:
            return f"storage of {p.regions.labels[r]} beyond its headroom"
        return f"{'usable storage' if p.regions.headroom_milli[r] else 'storage'} of {p.regions.labels[r]}"

    def advice(r: int, more: float) -> str:
        if p.regions.headroom_milli[r] == 1000:
            return f"raise {name(r)} by {quantity(more, 'TB')}"
        whole = int(edits.more_storage(p, {r: more}).regions.storage_mb[r] - p.regions.storage_mb[r])
        return f"raise storage of {p.regions.labels[r]} by {quantity(whole / MB_PER_TB, 'TB')}"

    limits = _capacity(view, "storage", p.usable_storage_mb, name, edits.more_storage, TB)
    usable = np.where(p.regions.headroom_milli == 1000, 1000, 1000 - p.regions.headroom_milli)
    return replace(limits, advice=advice, step=usable / 1000)


def cpu(view: View) -> ElasticLimits:
    """Elastic limits [R] on CPU, in cores."""
    p = view.p
    names = p.regions.labels
    return _capacity(view, "cpu", p.regions.cpu_mcores, lambda r: f"CPU of {names[r]}", edits.more_cores, CORES)


def quota(view: View) -> ElasticLimits:
    """Elastic limits on the CPU of one app in one region, in cores; one for each quota."""
    p = view.p

    def name(q: int) -> str:
        return f"CPU quota of {p.apps[p.cpu_quotas.app[q]]} in {p.regions.labels[p.cpu_quotas.region[q]]}"

    return _capacity(view, "quota", p.cpu_quotas.cpu_mcores, name, edits.more_quota, CORES)


def ingress(view: View) -> ElasticLimits:
    """Elastic limits on the data copied into a region, in TB a day; one for each region that has a limit."""
    p = view.p
    limited = np.flatnonzero(p.regions.ingress_limited)
    stated = Measure("TB a day", MB_PER_TB, lambda mb: f"{tb(mb)} a day for {days(p.days)}", float(p.days))

    def name(at: int) -> str:
        return f"ingress of {p.regions.labels[limited[at]]}"

    return _capacity(view, "ingress", p.regions.ingress_mb_per_day[limited], name, edits.more_ingress, stated)


def link(view: View) -> tuple[ElasticLimits, ...]:
    """Elastic limits on the data copied over a link, in TB a day; none without a table of links."""
    p = view.p
    if p.links is None:
        return ()
    ends = [
        (p.regions.labels[q], p.regions.labels[r]) for q, r in zip(p.links.source.tolist(), p.links.target.tolist())
    ]
    stated = Measure("TB a day", MB_PER_TB, lambda mb: f"{tb(mb)} a day", float(p.days))

    def name(at: int) -> str:
        return f"the link from {ends[at][0]} to {ends[at][1]}"

    return (_capacity(view, "link", p.links.capacity_mb_per_day, name, edits.more_link, stated),)


def whole_plan(view: View) -> tuple[ElasticLimits, ...]:
    """Elastic limits on the whole plan, each a sort of its own; none where the instance has none."""
    names, most = tuple(view.p.limits), tuple(view.p.limits.values())
    if not names:
        return ()

    def stated(m: int, value: Fraction) -> str:
        unit = LIMITS[names[m]].unit
        return quantity(float(value), unit) if unit else f"{float(value):.12g}"

    def raised(m: int, more: float) -> Fraction:
        return most[m] + Fraction(repr(more))

    def elastic(m: int) -> ElasticLimits:
        return row_limits(
            f"limit_{names[m]}",
            "upper",
            np.array([1 / float(most[m]) if most[m] else 1.0]),
            np.array([m]),
            view.rows["limit"].ids[m : m + 1],
            lambda m: f"the limit on {names[m]} ({stated(m, most[m])})",
            lambda m, more: f"raise the limit on {names[m]} to {stated(m, raised(m, more))}",
            lambda p, amounts: p.with_limits({names[m]: raised(m, more) for m, more in amounts.items()}),
            per_unit=limit_scale(view.p, names[m]),
        )

    return tuple(replace(elastic(m), alone=True) for m in range(len(names)))


def _capacity(
    view: View, name: str, amount: Ints, called: Callable[[int], str], edit: edits.Edit, measure: Measure
) -> ElasticLimits:
    """Limits that a repair raises by whole TB, cores or TB a day."""
    unit = measure.text
    rows = view.rows[name].ids.ravel()

    def describe(members: Sequence[int]) -> str:
        words = listed([f"{called(m)} ({unit(int(amount[m]))})" for m in members])
        return words if len(members) < SEVERAL else f"{words}, together {unit(int(amount[list(members)].sum()))}"

    return ElasticLimits(
        name,
        "upper",
        _by_size(amount, measure.base),
        describe=describe,
        row_member=np.arange(len(rows)),
        row=rows,
        advice=lambda m, more: f"raise {called(m)} by {quantity(more, measure.unit)}",
        relax=edit,
        per_unit=measure.base * measure.days,
        step=np.ones(len(rows)),
    )


def copies_max(view: View) -> ElasticLimits:
    """Elastic limits [I] on the most replicas of a dataset."""
    p = view.p
    return _copies(
        view,
        "copies_max",
        "upper",
        np.where(p.datasets.copies_max < len(p.regions), COPY, np.inf),
        lambda members: _by_number(
            members,
            p.datasets.copies_max,
            lambda n, rows: f"{named('dataset', names_at(p.datasets.labels, rows))} may have at most {n}",
        ),
        lambda i, more: f"allow dataset {p.datasets.labels[i]} {copies(int(p.datasets.copies_max[i]) + round(more))}",
        edits.more_copies,
        np.maximum(len(p.regions) - p.datasets.copies_max, 0),
    )


def copies_min(view: View) -> ElasticLimits:
    """Elastic limits [I] on the fewest replicas of a dataset; the last one of data that is read is never given up."""
    p = view.p
    read = np.bincount(p.reads.dataset, minlength=len(p.datasets)) > 0

    def describe(number: str, rows: IntArray) -> str:
        verb = "needs" if len(rows) == 1 else "each need"
        size = f"{tb(int(p.datasets.size_mb[rows].sum()))}{' together' if len(rows) > 1 else ''}"
        return f"{named('dataset', names_at(p.datasets.labels, rows))} {verb} {number} ({size})"

    return _copies(
        view,
        "copies_min",
        "lower",
        np.where(p.datasets.copies_min > read, COPY, np.inf),
        lambda members: _by_number(members, p.datasets.copies_min, describe),
        lambda i, fewer: (
            f"let dataset {p.datasets.labels[i]} have {copies(int(p.datasets.copies_min[i]) - round(fewer))}"
        ),
        edits.fewer_copies,
        np.maximum(p.datasets.copies_min - read, 0),
    )


def _copies(
    view: View,
    name: str,
    side: str,
    price: FloatArray,
    describe: Callable[[Sequence[int]], str],
    advice: Callable[[int, float], str],
    edit: edits.Edit,
    most: Ints,
) -> ElasticLimits:
    """Elastic limits on the numbers of copies of datasets."""
    rows = view.rows["copies" if side == "lower" else name].ids
    return ElasticLimits(
        name,
        side,
        price,
        describe=describe,
        row_member=np.arange(len(rows)),
        row=rows,
        advice=advice,
        relax=edit,
        per_unit=1.0,
        whole=True,
        most=most.astype(np.float64),
    )


def _by_number(members: Sequence[int], number: Ints, describe: Callable[[str, IntArray], str]) -> str:
    """Datasets described together that have the same number of copies."""
    chosen = np.array(members, np.int64)
    numbers = number[chosen]
    return ", ".join(describe(copies(int(n)), chosen[numbers == n]) for n in np.unique(numbers))


def _by_size(size: Ints, per_unit: float) -> FloatArray:
    """[L] price of a unit of data placement's elastic limits such that an average limit's size costs 1."""
    mean = float(size.mean()) / per_unit if len(size) else 1.0
    return np.full(len(size), 1 / mean if mean else 1.0)


def relief(problem: DataPlacement) -> ElasticProgram:
    """The program without the limits that close columns, and all limits."""
    formulation = base(_opened(problem))
    mip = _copies_apart(problem, formulation.mip)
    view = View(problem, mip)
    limits = tuple(one for one in (*amounts(view), *rules(view)) if one.count)
    return ElasticProgram(mip, limits, formulation.decode, lambda chosen: _story(problem, limits, chosen))


def _opened(p: DataPlacement) -> DataPlacement:
    """The instance in which every cell is open that some limit closes."""
    supply = p.regions.supply_mgpu.copy()
    supply[missing_types(p)] = 1
    closing = ("datasets.pinned", "datasets.forbidden", "datasets.residency", "workloads.pinned", "workloads.forbidden")
    none = {name: np.zeros_like(attrgetter(name)(p)) for name in closing}
    return p.with_columns({**none, "regions.supply_mgpu": supply, "remote_reads": True})


def _copies_apart(problem: DataPlacement, mip: Mip) -> Mip:
    """The program with each side of ``copies`` as a row of its own, so that each can move."""
    blocks = {block.name: block for block in (*mip.rows, *mip.columns)}
    fewest, place = blocks["copies"].ids, blocks["place"].ids
    upper = mip.row_upper.copy()
    upper[fewest] = np.inf
    row = len(upper) + np.arange(len(fewest))
    most = Extension(
        "copies_max",
        rows=len(fewest),
        row_upper=problem.datasets.copies_max,
        entries=[(np.repeat(row, place.shape[1]), place.ravel(), 1.0)],
    )
    return extended(replace(mip, row_upper=frozen(upper)), most)


def _story(
    problem: DataPlacement, limits: Sequence[ElasticLimits], chosen: Mapping[str, Sequence[int]]
) -> tuple[str, ...]:
    """Pins are described with the storage or ingress that they fill, everything else by sort."""
    p, left = problem, {name: list(members) for name, members in chosen.items()}
    by_name = {one.name: one for one in limits}
    pinned = np.nonzero(p.datasets.pinned)
    limited = np.flatnonzero(p.regions.ingress_limited)
    said = []
    for name, region_of in (("storage", np.arange(len(p.regions))), ("ingress", limited)):
        for member in list(left.get(name, ())):
            r = int(region_of[member])
            here = [m for m in left.get("pin", ()) if pinned[1][m] == r]
            if not here:
                continue
            data = pinned[0][here]
            arriving = data if name == "storage" else data[~p.datasets.stored[data, r]]
            size = tb(int(p.datasets.size_mb[arriving].sum()))
            words = f"{named('dataset', names_at(p.datasets.labels, data))} pinned there ({size})"
            said.append(f"{by_name[name].describe([member])} with {words}")
            left[name].remove(member)
            left["pin"] = [m for m in left["pin"] if m not in here]
    said += [by_name[name].describe(members) for name, members in left.items() if members]
    return tuple(said)
