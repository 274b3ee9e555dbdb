"""Standing of a batch's work against quotas (job placement): who is within them, and who borrows."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mast_opt.core.ledger import Ledger
from mast_opt.core.quotas import Quotas
from mast_opt.core.ranks import Ranks, Right
from mast_opt.problems.job_placement.units import Bools, Ints


class Standing(NamedTuple):
    """Levels of work, see ``core.ranks.Ranks``."""

    job_level: Ints
    """[J] of pending jobs."""
    kept: Bools
    """[O] the options on which a job has the right that its level says."""
    barred: Bools
    """[O] the options of jobs for which their tenants may not hold so much, whatever stops."""
    running_level: Ints
    """[V] running jobs: work of levels below may stop them."""
    exposed: Bools
    """[V] running jobs that may be stopped though they are not preemptible, as they borrow."""


def standing_of(
    quotas: Quotas,
    ranks: Ranks,
    running: Sequence[tuple[str, int, bool]],
    held_mgpu: Ints,
    jobs: Sequence[tuple[str, int]],
    order: Ints,
    first_part: Ints,
    options: tuple[Ints, Ints],
    asked_mgpu: Ints,
    gpu_types: Sequence[str],
) -> Standing:
    """The standing of all work. Pending jobs are taken in queue order, and each counts for those behind it; what runs
    stands as it does before any of them starts.

    Args:
        running: [V] tenant, tier, and whether it is preemptible.
        jobs: [J] tenant and tier.
        held_mgpu: [V, K].
        order: [J] the queue by tier, credit and age.
        first_part: [J] the first part of the job of each row; parts of a job stand one after another.
        options: (job, type) rows, ascending by job; each job's types in its order.
        asked_mgpu: [O] of all tasks.
    """
    ledger = Ledger(quotas)
    for v, (tenant, tier, _) in enumerate(running):
        amounts = {gpu_types[k]: int(held_mgpu[v, k]) for k in np.flatnonzero(held_mgpu[v]).tolist()}
        ledger.add(f"running {v}", tenant, tier, v, amounts)
    stand = [(tier, ledger.standing(f"running {v}")) for v, (_, tier, _) in enumerate(running)]
    running_level = np.array([ranks.limit(*one, preemptible=True) for one in stand], np.int64)
    exposed = np.array([ranks.limit(*one, preemptible=False) > 0 for one in stand], np.bool_)
    limits = {f"running {v}": ranks.limit(*stand[v], preemptible=may) for v, (*_, may) in enumerate(running)}
    stoppable = [{name for name, limit in limits.items() if limit > level} for level in range(ranks.levels)]
    job_level, kept = np.array([tier for _, tier in jobs], np.int64), np.ones(len(asked_mgpu), np.bool_)
    barred = ~kept
    first, parts = np.searchsorted(options[0], np.arange(len(jobs) + 1)).tolist(), np.bincount(first_part).tolist()
    for position, j in enumerate(order.tolist()):
        tenant, tier = jobs[j]
        if first_part[j] != j or not ledger.is_limited(tenant):
            continue
        rows = [range(first[part], first[part + 1]) for part in range(j, j + parts[j])]
        asked = [{gpu_types[options[1][o]]: int(asked_mgpu[o]) for o in some} for some in rows]
        right, amounts = best_right(ledger, tenant, tier, asked)
        job_level[j : j + parts[j]] = level = ranks.level(tier, right)
        if right is Right.OVER or ledger.displaced(tenant, tier, amounts, stoppable[level].__contains__) is None:
            barred[first[j] : first[j + parts[j]]] = True
            continue
        if len(rows) == 1:
            for o, (kind, mgpu) in zip(rows[0], asked[0].items()):
                kept[o] = ledger.right(tenant, tier, {kind: mgpu}) is right
        ledger.add(f"pending {j}", tenant, tier, len(running) + position, amounts)
    return Standing(job_level, kept, barred, running_level, exposed)


def best_right(
    ledger: Ledger, tenant: str, tier: int, asked: Sequence[Mapping[str, int]]
) -> tuple[Right, dict[str, int]]:
    """Best right by which a job could start, and its holding of each type then: of its parts one after another,
    each on the first type that gives it the best right.

    Args:
        asked: of each part, GPU type that it accepts → milli-GPUs.
    """
    held: dict[str, int] = {}
    for each in asked:
        more = [{**held, kind: held.get(kind, 0) + mgpu} for kind, mgpu in each.items()]
        held = min(more, key=lambda amounts: ledger.right(tenant, tier, amounts), default=held)
    return ledger.right(tenant, tier, held), held
