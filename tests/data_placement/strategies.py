"""Random data-placement instances and plans for property-based tests.

Instances are tiny, so that brute force keeps up, and every feature of the problem turns up in some of them:
several types, tiers and copies, pins and bans, residency, splittable work, outputs, headroom, quotas, ingress, links,
refusals, current runs, CPU-only tiers, zero sizes, volumes and supplies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from mast_opt.problems.data_placement import DataPlacement, Links, Plan
from mast_opt.problems.data_placement.entities import (
    CpuQuotas,
    CurrentRuns,
    Datasets,
    Options,
    Reads,
    Regions,
    Workloads,
)
from mast_opt.problems.data_placement.limits import LIMITS
from mast_opt.problems.data_placement.problem import SHARE, TERMS
from mast_opt.problems.kind.header import Objective
from mast_opt.problems.kind.problem_data import Group

Draw = Callable[[st.SearchStrategy[Any]], Any]

ODD_LABELS = ("eu west", "9z", "été", "none", "quo\"t'e", "a[b,c]", "x" * 150, "y" * 48, "two\nlines", "-", "#", "a\\b")
"""Labels that MathProg cannot print as they are."""


def array(draw: Draw, size: int | tuple[int, ...], values: Sequence[int] | st.SearchStrategy[int]) -> np.ndarray:
    """An array of draws from the values; shrinks to the first of them."""
    element = values if isinstance(values, st.SearchStrategy) else st.sampled_from(values)
    count = int(np.prod(size))
    return np.array(draw(st.lists(element, min_size=count, max_size=count)), np.int64).reshape(size)


def flags(draw: Draw, size: int | tuple[int, ...], often: int) -> np.ndarray:
    """Booleans, each true about once in ``often``; shrinks to false."""
    return array(draw, size, st.integers(0, often - 1)) == often - 1 if often > 1 else np.ones(size, np.bool_)


@st.composite
def problems(
    draw: Draw,
    *,
    regions: int = 3,
    datasets: int = 3,
    workloads: int = 3,
    links: bool | None = None,
    splits: bool | None = None,
    refuse: bool | None = None,
    roomy: bool = False,
    parts: int = SHARE,
    odd_labels: bool = False,
    limited: bool = False,
    priced: bool = False,
) -> DataPlacement:
    """An instance of at most the given sizes.

    Args:
        links, splits, refuse: with or without; None draws it.
        roomy: capacities that rarely bind, so that most instances are feasible.
        parts: shares of current runs are multiples of 1 / parts.
        odd_labels: name things in ways that no modelling language prints as they are.
        limited: with limits on the whole plan.
        priced: everything that may have a price has one, but for links.
    """
    R = draw(st.integers(1, regions))
    D = draw(st.integers(1, datasets))
    W = draw(st.integers(1, workloads))
    K = draw(st.integers(0, 2))
    links, splits, refuse = (draw(st.booleans()) if wish is None else wish for wish in (links, splits, refuse))
    unit = draw(st.sampled_from((1, 1000, 250_000)))
    tiers = draw(st.sampled_from(((0,), (0, 1), (1, 3), (0, 1, 2))))[:W]
    tier = np.append(np.arange(len(tiers)), array(draw, W - len(tiers), range(len(tiers))))
    size = array(draw, D, (2, 0, 1, 3, 7)) * unit
    room = (30, 20, 14) if roomy else (30, 0, 3, 5, 8, 14)

    reads = np.nonzero(flags(draw, (W, D), 2))
    read = np.bincount(reads[1], minlength=D) > 0
    copies_min = np.maximum(array(draw, D, (1, 0) if roomy else (1, 0, 2)), read)
    copies_max = np.maximum(array(draw, D, (R, 1, 2)), copies_min if roomy else 0)
    rules = array(draw, (D, R), (0, 0, 0, 0, 0, 0, 0, 1, 2))
    residency = flags(draw, (D, R), 2) & flags(draw, (D, 1), 4)
    if roomy:  # a pin outside the residency leaves no plan
        residency |= residency.any(axis=1, keepdims=True) & (rules == 1)
    work_rules = array(draw, (W, R), (0, 0, 0, 0, 0, 0, 0, 1, 2))
    options = _options(draw, W, K)
    apps = ("ads", "") if draw(st.booleans()) else ("feed", "ads", "maps")
    quotas = np.nonzero(flags(draw, (R, len(apps)), 4) & (np.array(apps) != ""))
    current = _current(draw, W, R, K, parts)
    names = _names(draw, odd_labels)
    supply = array(draw, (R, K), (4000, 0, 1500, 9000))
    return DataPlacement(
        name="drawn",
        regions=Regions(
            labels=names("r", R),
            storage_mb=array(draw, R, room) * unit,
            headroom_milli=array(draw, R, (0, 0, 100, 333) + (() if roomy else (1000,))),
            cpu_mcores=array(draw, R, room) * 1000,
            ingress_mb_per_day=array(draw, R, room) * unit,
            ingress_limited=flags(draw, R, 3),
            supply_mgpu=supply,
            **_prices(draw, Regions, R, priced),
            gpu_price_micro=array(draw, (R, K), (0, 2_000_000, 3_333_333)[priced:]) * (supply > 0),
        ),
        gpu_types=names("k", K),
        datasets=Datasets(
            labels=names("i", D),
            size_mb=size,
            copies_min=copies_min,
            copies_max=copies_max,
            stored=flags(draw, (D, R), 2),
            pinned=rules == 1,
            forbidden=rules == 2,
            residency=residency,
            **_prices(draw, Datasets, D, priced),
        ),
        workloads=Workloads(
            labels=names("w", W),
            tier=np.array(draw(st.permutations(tier.tolist())), np.int64),
            cpu_mcores=array(draw, W, (1000, 0, 500, 3700)),
            app=array(draw, W, range(len(apps))),
            splittable=flags(draw, W, 2) if splits else np.zeros(W, np.bool_),
            output_mb=array(draw, W, (0, 0, unit, 3 * unit)),
            pinned=work_rules == 1,
            forbidden=work_rules == 2,
            **_prices(draw, Workloads, W, priced),
        ),
        apps=apps,
        tiers=tiers,
        options=Options(
            workload=options[0],
            gpu_type=options[1],
            mgpu=options[2],
            **_prices(draw, Options, len(options[0]), priced),
        ),
        reads=Reads(
            workload=reads[0],
            dataset=reads[1],
            mb_per_day=array(draw, len(reads[0]), (1, 0, 2, 5)) * unit,
            **_prices(draw, Reads, len(reads[0]), priced),
        ),
        current_runs=CurrentRuns(workload=current[0], region=current[1], gpu_type=current[2], share=current[3]),
        cpu_quotas=CpuQuotas(region=quotas[0], app=quotas[1], cpu_mcores=array(draw, len(quotas[0]), room) * 1000),
        links=_links(draw, R, room, unit) if links else None,
        objective=draw(objectives(tiers)),
        remote_reads=draw(st.sampled_from((True, True, False))),
        may_refuse=refuse,
        days=draw(st.sampled_from((Fraction(1), Fraction(1, 2), Fraction(7), Fraction(3, 10)))),
        limits=draw(limits()) if limited else {},
    )


def _prices(draw: Draw, group: type[Group], rows: int, priced: bool) -> dict[str, np.ndarray]:
    """Every price that a table states, in millionths of a dollar; none of them 0 if ``priced``."""
    declared = (one.array.name for one in group.STATED if one.is_price)
    return {name: array(draw, rows, (0, 1_500_000, 25_500_000)[priced:]) for name in declared}


def limits() -> st.SearchStrategy[dict[str, Fraction]]:
    """Values of some limits on a whole plan: tight ones, loose ones, and 0."""
    values = (Fraction(1, 2), Fraction(0), Fraction(1), Fraction(3, 2), Fraction(1, 10), Fraction(10**6))
    return st.dictionaries(st.sampled_from(tuple(LIMITS)), st.sampled_from(values), min_size=1, max_size=3)


def objectives(tiers: Sequence[int]) -> st.SearchStrategy[Objective]:
    """The default weights, or any; some tiers with a weight of their own, or with a level."""
    drawn = st.fixed_dictionaries({term: st.sampled_from((0.0, 0.3, 1.0, 7.0)) for term in TERMS})
    weights = st.one_of(st.just(TERMS), drawn)

    def by_tier(*numbers: float) -> st.SearchStrategy[dict[int, float]]:
        return st.dictionaries(st.sampled_from(tiers), st.sampled_from(numbers), max_size=2)

    none = st.just(dict.fromkeys(tiers, 0.0))
    return st.builds(
        Objective, weights, by_tier(0.0, 0.25, 3.0), peak_levels=st.one_of(by_tier(0.0, 0.25, 0.7, 2.0), none)
    )


def _names(draw: Draw, odd: bool) -> Callable[[str, int], tuple[str, ...]]:
    def names(stem: str, count: int) -> tuple[str, ...]:
        plain = tuple(f"{stem}{n}" for n in range(count))
        if not odd:
            return plain
        return tuple(
            draw(st.lists(st.sampled_from((*plain, *ODD_LABELS)), min_size=count, max_size=count, unique=True))
        )

    return names


def _options(draw: Draw, W: int, K: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(workload, type, milli-GPUs): CPU-only work, or one to two acceptable types."""
    rows = []
    for w in range(W):
        accepted = sorted(draw(st.sets(st.integers(0, K - 1)))) if K else []
        rows += [(w, k, draw(st.sampled_from((1000, 0, 500, 3000, 8000)))) for k in accepted] or [(w, K, 0)]
    workload, kind, mgpu = np.array(rows, np.int64).T
    return workload, kind, mgpu


def _current(draw: Draw, W: int, R: int, K: int, parts: int) -> tuple[np.ndarray, ...]:
    """(workload, region, type, share) of today, at most one whole a workload."""
    rows = {}
    for w in range(W):
        left = parts
        for _ in range(draw(st.integers(0, 2))):
            share = draw(st.sampled_from((left, left // 2)))
            where = (w, draw(st.integers(0, R - 1)), draw(st.integers(0, K)))
            if share and where not in rows:
                rows[where] = share * SHARE // parts
                left -= share
    table = np.array([(*where, share) for where, share in rows.items()], np.int64).reshape(-1, 4)
    return tuple(table.T)


def _links(draw: Draw, R: int, room: Sequence[int], unit: int) -> Links:
    source, target = np.nonzero(~np.eye(R, dtype=np.bool_) & ~flags(draw, (R, R), 6))
    price = array(draw, len(source), (0, 20, 90)) / 1.0
    return Links(source, target, array(draw, len(source), room) * unit, price)


@st.composite
def plans(draw: Draw, problem: DataPlacement, *, parts: int = 4) -> Plan:
    """A plan that lists only what has a column in the formulation, with shares in multiples of 1 / parts.

    Replicas and runs are arbitrary, so most plans break some limits. Sources are listed with links only.
    """
    p = problem
    run, copies, remote = _possible_runs(p), _possible_copies(p), _possible_remote(p)
    share = array(draw, len(run), range(parts + 1))
    whole = ~p.workloads.splittable[[w for w, *_ in run]] & (array(draw, len(run), range(8)) > 0)
    return Plan(
        flags(draw, p.datasets.stored.shape, 2),
        *_listed(run, np.where(whole, np.where(2 * share > parts, parts, 0), share), 3, parts),
        *_listed(copies, array(draw, len(copies), range(parts + 1)), 3, parts),
        *_listed(remote, array(draw, len(remote), range(parts + 1)), 4, parts),
    )


def _listed(cells: list[tuple[int, ...]], shares: np.ndarray, width: int, parts: int) -> tuple[np.ndarray, ...]:
    """The columns of a relation: positions, then shares in thousandths, of the cells with a share."""
    rows = [(*cell, share * SHARE // parts) for cell, share in zip(cells, shares.tolist()) if share]
    return tuple(np.array(rows, np.int64).reshape(-1, width + 1).T)


def _possible_runs(p: DataPlacement) -> list[tuple[int, ...]]:
    option, region = np.nonzero(p.option_regions)
    return sorted(zip(p.options.workload[option].tolist(), region.tolist(), p.options.gpu_type[option].tolist()))


def _possible_copies(p: DataPlacement) -> list[tuple[int, ...]]:
    return [
        (i, q, r)
        for i in range(len(p.datasets))
        for q, r in _ends(p)
        if p.datasets.stored[i, q] and not p.datasets.stored[i, r] and not p.closed[i, r]
    ]


def _possible_remote(p: DataPlacement) -> list[tuple[int, ...]]:
    where = {(w, r) for w, r, _ in _possible_runs(p)} if p.remote_reads else set()
    reads = zip(p.reads.workload.tolist(), p.reads.dataset.tolist())
    return [(w, i, q, r) for w, i in reads for q, r in _ends(p) if (w, r) in where]


def _ends(p: DataPlacement) -> list[tuple[int, int]]:
    return [] if p.links is None else list(zip(p.links.source.tolist(), p.links.target.tolist()))
