"""Offers of data placement, and what a purchase does to the worst ratio."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from mast_opt.core.errors import UsageError
from mast_opt.core.units import HOURS_A_MONTH, MB_PER_TB, MICRO, MILLI
from mast_opt.core.wording import listed
from mast_opt.problems.data_placement.analysis.current_state import complete
from mast_opt.problems.data_placement.entities import GPUS, LINK, RESOURCES
from mast_opt.problems.data_placement.formulation.expansion import bought, expansion, relaxation, within_target
from mast_opt.problems.data_placement.plan import Plan, filled, gpu_demand, today
from mast_opt.problems.data_placement.problem import SHARE, DataPlacement, Ints
from mast_opt.problems.data_placement.verification.verifier import verify
from mast_opt.problems.kind.analysis_hooks import Expansion, Offer


def offers(problem: DataPlacement) -> tuple[Offer, ...]:
    """The candidates of the instance. Raises UsageError where there are none."""
    p, c = problem, problem.candidates
    if c is None or not len(c):
        raise UsageError("the instance offers nothing to buy; add a table 'candidates' (mast-opt template shows one)")
    found = []
    for at in range(len(c)):
        region = p.regions.labels[c.region[at]]
        what = RESOURCES[c.resource[at]]
        if c.resource[at] == GPUS:
            what, step = f"{p.gpu_types[c.gpu_type[at]]} GPUs", c.step[at] / MILLI
        else:
            step = c.step[at] / MB_PER_TB
        place = region if c.resource[at] != LINK else f"{region} → {p.regions.labels[c.target[at]]}"
        unit = ("GPUs", "TB", "TB a day")[c.resource[at]]
        price, most, lead = int(c.price_micro[at]), int(c.most_steps[at]), int(c.lead_days[at])
        found.append(Offer(c.labels[at], what, place, unit, float(step), Fraction(price, MICRO), most, lead))
    return tuple(found)


def tier_position(problem: DataPlacement, tier: int | None) -> int:
    """Position of the last tier that counts. Raises UsageError for a tier that no work has."""
    if tier is None:
        return len(problem.tiers) - 1
    if tier not in problem.tiers:
        raise UsageError(f"no work has tier {tier}; expected one of: {listed([str(one) for one in problem.tiers])}")
    return problem.tiers.index(tier)


def worst_ratio(problem: DataPlacement, plan: Plan, tier: int) -> Fraction:
    """The largest demand over supply of work up to the tier, exactly."""
    supply = problem.regions.supply_mgpu
    demand = gpu_demand(problem, plan)[:, :, tier]
    cells = np.argwhere(supply > 0).tolist()
    ratios = (Fraction(round(float(demand[r, k]) * SHARE), SHARE * int(supply[r, k])) for r, k in cells)
    return max(ratios, default=Fraction(0))


def next_steps(
    problem: DataPlacement, plan: Plan, steps: Ints, most_steps: Ints, ratio: Fraction, tier: int
) -> Ints | None:
    """More steps, where the plan of the instance with ``steps`` bought is over the ratio; None where none are left.

    Of the candidates for a region and type that is over, the one with the lowest price for a GPU.
    """
    c = problem.candidates
    assert c is not None
    now = bought(problem, steps)
    over = gpu_demand(now, plan)[:, :, tier] / float(ratio) - now.regions.supply_mgpu
    more = steps.copy()
    for r, k in np.argwhere(over > 0).tolist():
        mine = np.flatnonzero((c.resource == GPUS) & (c.region == r) & (c.gpu_type == k) & (more < most_steps))
        for at in sorted(mine.tolist(), key=lambda one: c.price_micro[one] / c.step[one]):
            wanted = int(np.ceil(over[r, k] / c.step[at]))
            taken = min(wanted, int(most_steps[at] - more[at]))
            more[at] += taken
            over[r, k] -= taken * c.step[at]
            if over[r, k] <= 0:
                break
    return None if np.array_equal(more, steps) else more


def stressed(problem: DataPlacement, ratio: Fraction, tier: int, overload_weight: float) -> DataPlacement:
    """The instance for a heuristic: supply times the ratio, overload of the tiers that count above all else."""
    supply = np.array(
        [[int(ratio * int(mgpu)) for mgpu in row] for row in problem.regions.supply_mgpu.tolist()], np.int64
    ).reshape(problem.regions.supply_mgpu.shape)
    late = dict.fromkeys(problem.tiers[tier + 1 :], 0.0)
    weights = dict(problem.objective.weights) | {"overload": overload_weight}
    objective = replace(problem.objective, weights=weights, tier_weights=dict(problem.objective.tier_weights) | late)
    return replace(problem, regions=replace(problem.regions, supply_mgpu=supply), objective=objective)


def narrowed(problem: DataPlacement) -> tuple[DataPlacement, DataPlacement]:
    """The instance in which every replica of today stays and nothing is read remotely, first with no other replicas but
    those that are pinned."""
    d = problem.datasets
    pinned = d.pinned | (d.stored & ~problem.closed)
    held = replace(problem, remote_reads=False, datasets=replace(d, pinned=pinned))
    return replace(held, datasets=replace(held.datasets, forbidden=d.forbidden | ~pinned)), held


def bill(problem: DataPlacement, plan: Plan | None) -> float | None:
    """USD a month of a plan, or of today, for what exists; None without prices or where today is not known."""
    held = plan if plan is not None or not complete(problem) else today(problem)
    return None if held is None else verify(problem, held).metrics.get("billed_usd_a_month")


def bill_of_use(problem: DataPlacement, steps: Ints) -> float | None:
    """USD a month of what is bought while all its GPUs and storage are in use; None without prices."""
    if not problem.has_prices:
        return None
    now, then = problem.regions, bought(problem, steps).regions
    gpus = ((then.supply_mgpu - now.supply_mgpu).astype(object) * now.gpu_price_micro).sum()
    stored = ((then.storage_mb - now.storage_mb).astype(object) * now.storage_price_micro).sum()
    return float(Fraction(HOURS_A_MONTH * gpus, MILLI * MICRO) + Fraction(stored, MB_PER_TB * MICRO))


EXPANSION = Expansion(
    offers=offers,
    tier=tier_position,
    program=expansion,
    relaxation=relaxation,
    bought=bought,
    narrowed=narrowed,
    refilled=lambda problem, plan: filled(problem, plan.place, plan.rows("run")),
    within=within_target,
    worst=worst_ratio,
    served=lambda problem: replace(problem, may_refuse=False),
    next_steps=next_steps,
    stressed=stressed,
    bill=bill,
    bill_of_use=bill_of_use,
)
