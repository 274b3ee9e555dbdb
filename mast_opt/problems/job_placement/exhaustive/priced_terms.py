"""Objective terms that each job-placement solver takes into account. Imports no kernel, so that ``kind`` can say it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.search.interface import Pricing
from mast_opt.problems.search.params import Params

_IN_ORDER = ("rejected", "preemption", "balance", "spread", "fragmentation")
"""Terms that the order of the queue and of the bids stands for, whatever their weights."""


def _unpriced(problem: JobPlacement, params: Params | None) -> Mapping[str, str]:
    """Terms that no rule looks at, where they are not equal in all clusters that are open to a job."""
    p = problem
    found = {}
    rule = "the solver follows a fixed order, in which {} does not occur"
    if (p.costs.cost_micro > 0).any():
        found["cost"] = rule.format("cost")
    if p.remote_reads and np.ptp(np.where(p.open_region, p.missing_mb, 0), axis=1).any():
        found["remote"] = rule.format("the volume of remote reads")
    return found


BY_RULE = Pricing(frozenset(_IN_ORDER) | {"remote", "cost"}, _unpriced)
"""Pricing of ``federated`` and the baselines, which place the jobs one by one in a fixed order without a price."""
PRICED = Pricing(frozenset(_IN_ORDER) | {"remote", "cost"})
"""Pricing of ``exhaustive``, whose bids have a price, and ``exhaustive+repair``, which minimises the weighted terms."""
