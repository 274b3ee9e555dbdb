"""Capacity expansion of data placement as a MIP: the cheapest purchases that bring the worst ratio to a target.

The rows are those of the formulation, with what may be bought added to their right-hand sides, and

    buy[c]     whole steps of candidate c, at most most_steps[c]
    target     D[r,k,p] ≤ ratio · (supply[r,k] + Σ_c step[c]·buy[c])        for the last tier that counts
    purchase   Σ_c usd[c]·buy[c]                                            minimised
"""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from mast_opt.core.arrays import IntArray
from mast_opt.core.units import MICRO
from mast_opt.problems.data_placement.entities import GPUS, LINK, STORAGE, Candidates
from mast_opt.problems.data_placement.formulation.formulation import Statement
from mast_opt.problems.data_placement.plan import Plan
from mast_opt.problems.data_placement.problem import SHARE, DataPlacement, Ints
from mast_opt.problems.kind.formulation import Formulation
from mast_opt.problems.mip import Mip, frozen

PURCHASE = "purchase"
"""The term of the program that is minimised: USD."""


@dataclass(frozen=True, eq=False)
class ExpansionProgram:
    """The program of a purchase."""

    mip: Mip
    buy: IntArray
    """[C] its columns of steps."""


def bought(problem: DataPlacement, steps: Ints) -> DataPlacement:
    """The instance once so many steps of each candidate are bought; storage keeps its share of headroom."""
    p, c = problem, problem.candidates
    assert c is not None
    amount = c.step * steps
    supply, storage = p.regions.supply_mgpu.copy(), p.regions.storage_mb.copy()
    gpus, disks, wires = (np.flatnonzero(c.resource == what) for what in (GPUS, STORAGE, LINK))
    np.add.at(supply, (c.region[gpus], c.gpu_type[gpus]), amount[gpus])
    np.add.at(storage, c.region[disks], amount[disks])
    changed: dict[str, object] = {"regions.supply_mgpu": supply, "regions.storage_mb": storage}
    if len(wires) and p.links is not None:
        capacity = p.links.capacity_mb_per_day.copy()
        np.add.at(capacity, _link_of(p, c)[wires], amount[wires])
        changed["links.capacity_mb_per_day"] = capacity
    return p.with_columns(changed)


def expansion(problem: DataPlacement, most_steps: Ints, ratio: Fraction, tier: int, exact: bool) -> ExpansionProgram:
    """The program.

    Args:
        most_steps: [C] steps of each candidate that may be bought, 0 for one that may not.
        ratio: of demand over supply, at most.
        tier: position of the last tier whose work counts.
        exact: shares as whole thousandths, as plans state them.
    """
    p, c = problem, problem.candidates
    assert c is not None
    most = bought(p, most_steps)
    statement = Statement(most, SHARE if exact else 1)
    m = statement.m
    buy = m.columns("buy", [c.labels], upper=most_steps, integral=True)
    m.term(PURCHASE, buy, c.price_micro / MICRO)

    region, kind = np.nonzero(most.regions.supply_mgpu)
    pair_of = np.full(most.regions.supply_mgpu.shape, -1)
    pair_of[region, kind] = np.arange(len(region))
    supply = p.regions.supply_mgpu[region, kind]
    target = m.rows("target", [p.regions.labels, p.gpu_types], [region, kind], upper=float(ratio) * supply)
    target.add(np.arange(len(region)), statement.demand[:, tier], 1)
    gpus, disks, wires = (np.flatnonzero((c.resource == what) & (most_steps > 0)) for what in (GPUS, STORAGE, LINK))
    target.add(pair_of[c.region[gpus], c.gpu_type[gpus]], buy[gpus], -float(ratio) * c.step[gpus])

    keep = 1000 - p.regions.headroom_milli[c.region[disks]]
    statement.storage.upper = p.usable_storage_mb
    statement.storage.add(c.region[disks], buy[disks], -(c.step[disks] * keep // 1000))
    if statement.link is not None and p.links is not None:
        days = float(p.days)
        statement.link.upper = p.links.capacity_mb_per_day * days
        statement.link.add(_link_of(p, c)[wires], buy[wires], -c.step[wires] * days)
    return ExpansionProgram(m.build({PURCHASE: 1.0}), buy)


def within_target(problem: DataPlacement, ratio: Fraction, tier: int) -> Formulation[Plan]:
    """The formulation in which no demand up to the tier is more than ``ratio`` of its supply."""
    return _within(problem, ratio, tier, 1)


def _within(problem: DataPlacement, ratio: Fraction, tier: int, parts: int) -> Formulation[Plan]:
    """Formulation of a plan whose demand is at most a ratio of supply, for purchases."""
    statement = Statement(problem, parts)
    mip, codec = statement.build()
    upper = mip.col_upper.copy()
    supply = problem.regions.supply_mgpu[np.nonzero(problem.regions.supply_mgpu)]
    upper[statement.demand[:, tier]] = [float(ratio * int(mgpu)) for mgpu in supply]
    held = replace(mip, col_upper=frozen(upper))
    rounds = parts == 1 and statement.rounds
    again = (lambda: _within(problem, ratio, tier, SHARE)) if rounds else None
    return Formulation(held, codec.decode, codec.encode, again)


def relaxation(problem: DataPlacement, most_steps: Ints, ratio: Fraction, tier: int) -> ExpansionProgram:
    """A small program whose optimum is at most that of ``expansion``: all regions together, shares continuous.

    GPUs of each type and storage are added up over regions, so that it does not matter where work runs; each workload
    chooses among its types, and each dataset has its fewest copies.
    """
    from mast_opt.problems.mip import MipBuilder

    p, c = problem, problem.candidates
    assert c is not None
    m = MipBuilder("expansion_relaxation")
    buy = m.columns("buy", [c.labels], upper=most_steps, integral=True)
    m.term(PURCHASE, buy, c.price_micro / MICRO)
    on = np.flatnonzero((p.workloads.tier[p.options.workload] <= tier) & (p.options.gpu_type < len(p.gpu_types)))
    workload = p.options.workload[on]
    kinds = (*p.gpu_types,)
    share = m.columns("share", [p.workloads.labels, kinds], [workload, p.options.gpu_type[on]], upper=1)
    whole = np.unique(workload)
    served = m.rows("served", [p.workloads.labels], [whole], lower=0.0 if p.may_refuse else 1.0, upper=1.0)
    served.add(np.searchsorted(whole, workload), share, 1)
    target = m.rows("target", [kinds], upper=float(ratio) * p.regions.supply_mgpu.sum(axis=0))
    target.add(p.options.gpu_type[on], share, p.options.mgpu[on])
    gpus, disks = (np.flatnonzero(c.resource == what) for what in (GPUS, STORAGE))
    target.add(c.gpu_type[gpus], buy[gpus], -float(ratio) * c.step[gpus])
    least = float(p.datasets.size_mb @ p.datasets.copies_min)
    if not p.may_refuse:
        least += float(p.workloads.output_mb.sum())
    storage = m.rows("storage", [], upper=float(p.usable_storage_mb.sum()) - least)
    storage.add(0, buy[disks], -c.step[disks].astype(np.float64))
    return ExpansionProgram(m.build({PURCHASE: 1.0}), buy)


def _link_of(problem: DataPlacement, offered: Candidates) -> Ints:
    """[C] position of each candidate's link; 0 for candidates that are no links."""
    regions = len(problem.regions)
    link = np.zeros((regions, regions + 1), np.int64)
    if problem.links is not None:
        link[problem.links.source, problem.links.target] = np.arange(len(problem.links))
    return link[offered.region, np.minimum(offered.target, regions)]
