"""Reads from other regions once a data-placement plan is carried out, as rows of its steps."""

from collections import defaultdict
from collections.abc import Sequence

from mast_opt.core.units import MB_PER_TB
from mast_opt.problems.data_placement.plan import Plan, read_positions
from mast_opt.problems.data_placement.prices import link_prices
from mast_opt.problems.data_placement.problem import SHARE, DataPlacement
from mast_opt.problems.kind.migration_plan import Move, RemoteRead


def remote_reads(problem: DataPlacement, plan: Plan, moves: Sequence[Move]) -> tuple[RemoteRead, ...]:
    """The reads of each workload and region from other regions, the largest first.

    Args:
        problem: the instance.
        plan: a plan of it.
        moves: the steps to the plan, which say from which day work runs where it does.
    """
    p, price = problem, link_prices(problem)
    found: dict[tuple[int, int], list[tuple[int, int, int, float]]] = defaultdict(list)
    columns = (*plan.rows("remote"), read_positions(p, plan.remote_workload, plan.remote_dataset))
    for w, i, q, r, share, read in zip(*(column.tolist() for column in columns), strict=True):
        if read >= 0 and q >= 0:
            found[w, r].append((i, q, share, int(p.reads.mb_per_day[read]) * share / SHARE / MB_PER_TB))
    begins = {(one.what, one.target): one.day or 0 for one in reversed(moves) if one.action in ("move", "start")}
    rows = [
        RemoteRead(
            p.workloads.labels[w],
            p.regions.labels[r],
            tuple(p.datasets.labels[i] for i in sorted({i for i, *_ in reads})),
            tuple(p.regions.labels[q] for q in sorted({q for _, q, *_ in reads})),
            max(sum(share for j, _, share, _ in reads if j == i) for i, *_ in reads) / SHARE,
            sum(tb for *_, tb in reads),
            sum(tb * price.get((q, r), 0.0) for _, q, _, tb in reads),
            begins.get((p.workloads.labels[w], p.regions.labels[r]), 0),
        )
        for (w, r), reads in found.items()
    ]
    return tuple(sorted(rows, key=lambda one: (-one.tb_a_day, one.what, one.region)))
