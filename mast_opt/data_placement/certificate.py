"""The certificate of a lower bound: prices that a stranger can check without trusting the search.

For any prices ≥ 0 within the boxes below, the bound is the sum of the cheapest cell of every workload, the
cheapest set of replicas of every dataset and a constant (Lagrangian duality: every relaxed row is priced, what is
left is minimised exactly). This module evaluates that sum with numpy alone and shares no code with the search.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.data_placement.packing import peak_floor
from mast_opt.data_placement.problem import SHARE, DataPlacement
from mast_opt.data_placement.tables import TERMS
from mast_opt.errors import Fault, PlanError

Floats = NDArray[np.float64]

LEVELS = 65535
"""Steps in which a read price is kept, as a part of its box: two bytes each."""
CHUNK = 200_000
"""Rows handled at a time."""
ROUNDING = 1e-10
"""Relative allowance for the rounding of sums."""
DEAREST = 1e100
"""Largest price, so that no sum overflows."""
FILE = "certificate.npz"


@dataclass(frozen=True, eq=False)
class Certificate:
    """Prices on the rows of the formulation. ``docs/heuristics/tetris.md`` derives the bound."""

    weights: Mapping[str, float]
    """The objective that is bounded: a weight for every term."""
    read_level: NDArray[np.uint16]
    """[N, R] price of row ``local`` in steps of ``read_cap / LEVELS``."""
    read_cap: Floats
    """[N] the largest price of each read; at most the price of its remote volume where that is allowed."""
    worst: Floats
    """[R, K, P] prices of the rows ``worst``."""
    over: Floats
    """[R, K, P] prices of the rows ``gpu``, per milli-GPU."""
    under: Floats
    """[R, K] prices of the rows ``under``, per milli-GPU."""
    cpu: Floats
    storage: Floats
    ingress: Floats
    quota: Floats

    @classmethod
    def of(cls, problem: DataPlacement, weights: Mapping[str, float], prices: Any) -> Certificate:
        """Prices of the search, rounded to what is kept."""
        cap = _remote_cap(problem, weights)
        if cap is None:
            cap = prices.read.max(axis=1, initial=0.0).astype(np.float64)
        level = np.empty(prices.read.shape, np.uint16)
        for first in range(0, len(level), CHUNK):
            rows = slice(first, first + CHUNK)
            steps = np.floor(prices.read[rows] / np.where(cap[rows] > 0, cap[rows], 1.0)[:, None] * LEVELS)
            level[rows] = np.clip(steps, 0, LEVELS)
        peak = weights["peak"] * problem.tier_weight
        total = prices.worst.sum(axis=0)
        inside = np.minimum(1.0, peak * (1 - 1e-12) / np.where(total > 0, total, 1.0))
        others = (prices.over, prices.under, prices.cpu, prices.storage, prices.ingress, prices.quota)
        return cls(
            weights=dict(weights),
            read_level=level,
            read_cap=cap,
            worst=prices.worst * inside,
            **{name: np.maximum(price, 0.0) for name, price in zip(_ARRAYS[3:], others)},
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a file keeps; ``from_arrays`` reads it back."""
        names = list(self.weights)
        return {
            "weight_names": np.array(names),
            "weights": np.array([self.weights[name] for name in names]),
            **{name: getattr(self, name) for name in _ARRAYS},
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Certificate:
        """Raises PlanError naming every array that a file lacks or holds in another type."""
        names = ("weight_names", "weights", *_ARRAYS)
        faults = [Fault(FILE, f"an array called {name}") for name in names if name not in arrays]
        faults += [
            Fault(FILE, f"an array of {_KEPT_AS.get(name, 'float64')}", column=name, value=str(arrays[name].dtype))
            for name in names
            if name in arrays and not _kept_well(name, arrays[name])
        ]
        if not faults and (arrays["weight_names"].ndim != 1 or arrays["weights"].shape != arrays["weight_names"].shape):
            faults.append(Fault(FILE, "one weight for each of weight_names", column="weights"))
        if faults:
            raise PlanError(faults)
        weights = dict(zip(arrays["weight_names"].tolist(), arrays["weights"].tolist()))
        return cls(weights, *(arrays[name] for name in _ARRAYS))

    def bound(self, problem: DataPlacement) -> float:
        """The lower bound that the prices prove for Σ weight · term.

        Raises:
            PlanError: the prices do not fit the problem, or lie outside their boxes.
        """
        self._check(problem)
        work, data = _cheapest_cells(self, problem), _cheapest_sets(self, problem)
        constant = _constant(self, problem)
        parts = (*work, *data, *constant)
        return sum(parts) - ROUNDING * sum(abs(part) for part in parts)

    def _check(self, problem: DataPlacement) -> None:
        p = problem
        regions, kinds, tiers, reads = len(p.regions), len(p.gpu_types), len(p.tiers), len(p.read_workload)
        if self.weights.keys() != TERMS.keys():
            raise PlanError([Fault(FILE, f"a weight for each of {', '.join(TERMS)}", column="weight_names")])
        shapes = {
            "read_level": (reads, regions),
            "read_cap": (reads,),
            "worst": (regions, kinds, tiers),
            "over": (regions, kinds, tiers),
            "under": (regions, kinds),
            "cpu": (regions,),
            "storage": (regions,),
            "ingress": (regions,),
            "quota": (len(p.quota_region),),
        }
        faults = [
            Fault(FILE, f"shape {shape}", column=name, value=str(getattr(self, name).shape))
            for name, shape in shapes.items()
            if getattr(self, name).shape != shape
        ]
        if not faults:
            faults = [
                Fault(FILE, f"prices from 0 to {DEAREST:g}", column=name)
                for name in list(shapes)[1:]
                if not ((getattr(self, name) >= 0) & (getattr(self, name) <= DEAREST)).all()
            ] + self._outside_boxes(p)
        if faults:
            raise PlanError(faults)

    def _outside_boxes(self, p: DataPlacement) -> list[Fault]:
        remote = _remote_cap(p, self.weights)
        supplied = p.supply_mgpu > 0
        peak = self.weights["peak"] * p.tier_weight
        per_gpu = 1 / np.maximum(p.supply_mgpu.sum(axis=0), 1)
        tests = {
            "read_cap": remote is not None and bool((self.read_cap > remote * (1 + 1e-12)).any()),
            "worst": bool((self.worst.sum(axis=0) > peak * (1 + 1e-12)).any()) or bool(self.worst[~supplied].any()),
            "over": bool((self.over > self.weights["overload"] * p.tier_weight * per_gpu[:, None] * (1 + 1e-12)).any())
            or bool(self.over[~supplied].any()),
            "under": bool((self.under > self.weights["idle"] * per_gpu * (1 + 1e-12)).any())
            or bool(self.under[~supplied].any()),
            "ingress": bool(self.ingress[~p.ingress_limited].any()),
        }
        return [Fault(FILE, "prices within their boxes", column=name) for name, bad in tests.items() if bad]


def certified_bound(problem: DataPlacement, arrays: Mapping[str, NDArray[Any]]) -> float:
    """The bound that a file's arrays prove for the objective; where it is lexicographic, for its first term.

    Raises:
        PlanError: the arrays are no certificate, do not fit the problem, or bound another objective.
    """
    certificate = Certificate.from_arrays(arrays)
    objective = problem.objective
    weights = dict(objective.weights)
    if objective.lexicographic:
        weights = dict.fromkeys(weights, 0.0) | {objective.order[0]: 1.0}
    if dict(certificate.weights) != weights:
        meant = f"the term {objective.order[0]} alone" if objective.lexicographic else "the instance's weights"
        raise PlanError([Fault(FILE, f"prices for {meant}", column="weights", value=str(dict(certificate.weights)))])
    return max(0.0, certificate.bound(problem))  # every term is a penalty


def _kept_well(name: str, array: NDArray[Any]) -> bool:
    return array.dtype.kind == "U" if name == "weight_names" else array.dtype == _KEPT_AS.get(name, "float64")


_KEPT_AS = {"weight_names": "text", "read_level": "uint16"}
_ARRAYS = ("read_level", "read_cap", "worst", "over", "under", "cpu", "storage", "ingress", "quota")


def _remote_cap(p: DataPlacement, weights: Mapping[str, float]) -> Floats | None:
    """[N] price of reading everything remotely; None where that is forbidden."""
    if not p.remote_reads:
        return None
    return weights["remote"] * p.read_mb_per_day / max(int(p.read_mb_per_day.sum()), 1)


def _cheapest_cells(c: Certificate, p: DataPlacement) -> list[float]:
    """Σ over workloads of the cheapest option and region (or of leaving it out)."""
    workloads, regions = len(p.workloads), len(p.regions)
    supply = np.maximum(p.supply_mgpu, 1)[:, :, None]
    price = c.worst / supply + c.over
    price[:, :, -1] -= c.under
    per_tier = np.cumsum(price[:, :, ::-1], axis=2)[:, :, ::-1]
    per_tier = np.concatenate([per_tier, np.zeros((regions, 1, len(p.tiers)))], axis=1)
    quota = np.zeros((len(p.apps), regions))
    quota[p.quota_app, p.quota_region] = c.quota
    move = c.weights["moved_work"] * p.demand_mgpu / p.demand_mgpu.sum()
    refuse = p.tier_weight[p.tier] * p.demand_mgpu
    refuse = c.weights["unserved"] * refuse / (refuse.sum() or 1.0)
    share = p.current_share / SHARE
    read_at = np.searchsorted(p.read_workload, np.arange(workloads + 1))
    option_at = np.searchsorted(p.option_workload, np.arange(workloads + 1))
    sums = []
    for first in range(0, workloads, CHUNK):
        last = min(first + CHUNK, workloads)
        rows = slice(read_at[first], read_at[last])
        base = np.zeros((last - first, regions))
        for r in range(regions):
            base[:, r] = np.bincount(
                p.read_workload[rows] - first,
                weights=c.read_level[rows, r] * (c.read_cap[rows] / LEVELS),
                minlength=last - first,
            )
        own = np.arange(first, last)
        base += p.cpu_need_mcores[own, None] * (c.cpu + quota[p.app[own]]) + p.output_mb[own, None] * c.storage
        today = np.flatnonzero((p.current_workload >= first) & (p.current_workload < last))
        w, home = p.current_workload[today], p.current_region[today]
        leave = np.bincount(w - first, weights=share[today] * move[w], minlength=last - first)
        pair, at = np.unique((w - first) * regions + home, return_inverse=True)
        there = np.bincount(at, weights=share[today], minlength=len(pair))
        saved = np.where(p.splittable[pair // regions + first], 1.0, there) * move[pair // regions + first]
        base[pair // regions, pair % regions] -= saved
        options = slice(option_at[first], option_at[last])
        work, kind = p.option_workload[options], p.option_type[options]
        cell = base[work - first] + p.option_mgpu[options, None] * per_tier[:, kind, p.tier[work]].T
        cell = np.where(p.option_regions[options], cell, np.inf).min(axis=1)
        best = np.full(last - first, np.inf)
        np.minimum.at(best, work - first, cell)
        if p.may_refuse:
            best = np.minimum(best, refuse[own])
        best += leave
        sums.append(float(best[np.isfinite(best)].sum()))
    return sums


def _cheapest_sets(c: Certificate, p: DataPlacement) -> list[float]:
    """Σ over datasets of the cheapest set of replicas within its limits."""
    datasets, regions = p.stored.shape
    share = p.size_mb / max(int(p.size_mb.sum()), 1)
    order = np.argsort(p.read_dataset, kind="stable")
    start = np.searchsorted(p.read_dataset[order], np.arange(datasets + 1))
    sums = []
    for first in range(0, datasets, CHUNK):
        last = min(first + CHUNK, datasets)
        rows = order[start[first] : start[last]]
        own = slice(first, last)
        price = c.weights["storage"] * share[own, None] + p.size_mb[own, None] * c.storage
        new = c.weights["copy"] * share[own, None] + p.size_mb[own, None] * c.ingress
        cost = price + np.where(p.stored[own], 0.0, new)
        for r in range(regions):
            cost[:, r] -= np.bincount(
                p.read_dataset[rows] - first,
                weights=c.read_level[rows, r] * (c.read_cap[rows] / LEVELS),
                minlength=last - first,
            )
        pinned = p.pinned[own]
        total = np.where(pinned, cost, 0.0).sum(axis=1)
        count = pinned.sum(axis=1)
        free = np.sort(np.where(pinned | p.forbidden[own], np.inf, cost), axis=1)
        rank = np.arange(1, regions + 1)[None, :] + count[:, None]
        must = rank <= p.copies_min[own, None]
        may = (rank <= p.copies_max[own, None]) & (free < 0)
        total += np.where((must | may) & np.isfinite(free), free, 0.0).sum(axis=1)
        sums.append(float(total.sum()))
    return sums


def _constant(c: Certificate, p: DataPlacement) -> list[float]:
    """What no decision touches: the limits at their prices, and the peaks that gangs force."""
    left = np.maximum(c.weights["peak"] * p.tier_weight - c.worst.sum(axis=0), 0.0)
    limits = (
        (c.cpu, p.cpu_mcores),
        (c.storage, p.usable_storage_mb),
        (c.ingress, np.where(p.ingress_limited, p.ingress_mb, 0)),
        (c.quota, p.quota_mcores),
    )
    return [
        -float((c.over * p.supply_mgpu[:, :, None]).sum()),
        float((c.under * p.supply_mgpu).sum()),
        float((left * peak_floor(p)).sum()),
        *(-float(price @ limit) for price, limit in limits),
    ]
