"""Work that has no GPUs once a data-placement plan is carried out, where more are asked than there are."""

import numpy as np

from mast_opt.core.units import MILLI
from mast_opt.core.wording import NOTICED
from mast_opt.problems.data_placement.migration.workload_moves import todays_cells
from mast_opt.problems.data_placement.plan import Plan
from mast_opt.problems.data_placement.problem import SHARE, DataPlacement
from mast_opt.problems.kind.migration_plan import Waiting


def waiting_work(problem: DataPlacement, plan: Plan) -> tuple[Waiting, ...]:
    """Work that has fewer GPUs than it asks for, the most important first.

    The GPUs of a region and type go to the tiers in their order; within a tier to work that runs there today, then to
    the work that asks for most.
    """
    p, kinds = problem, len(problem.gpu_types)
    on = plan.run_type < kinds
    work, region, kind, share = (column[on] for column in plan.rows("run"))
    asked, tier, cell = p.option_mgpu[work, kind] * share / SHARE, p.workloads.tier[work], region * kinds + kind
    now = todays_cells(p, plan)
    moves = np.array(
        [(r, k) not in now.get(w, {}) for w, r, k in zip(work.tolist(), region.tolist(), kind.tolist(), strict=True)],
        np.bool_,
    )
    order = np.lexsort((work, -asked, moves, tier, cell))
    before = np.cumsum(asked[order]) - asked[order]
    begins = np.searchsorted(cell[order], cell[order])
    free = p.regions.supply_mgpu[region, kind][order] - (before - before[begins])
    missing = (asked[order] - np.clip(free, 0.0, asked[order])) / MILLI
    found = [
        Waiting(
            p.workloads.labels[work[n]],
            p.tiers[tier[n]],
            p.regions.labels[region[n]],
            p.gpu_types[kind[n]],
            float(asked[n]) / MILLI,
            amount,
        )
        for n, amount in zip(order.tolist(), missing.tolist(), strict=True)
        if amount >= NOTICED
    ]
    return tuple(sorted(found, key=lambda one: (one.tier, -one.missing, one.what)))
