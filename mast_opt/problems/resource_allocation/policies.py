"""Policies of resource allocation: what is maximised or minimised, and what each one needs to know."""

from collections.abc import Mapping

from mast_opt.core.sense import Sense
from mast_opt.problems.kind.header import Policy

TOTAL_RATE, MAX_MIN, MAKESPAN, FINISH_TIME = "total-rate", "max-min", "makespan", "finish-time-fairness"
RATE_PER_COST, NASH, HARMONIC, COST, HIERARCHICAL = "rate-per-cost", "nash", "harmonic", "cost", "hierarchical"
PARTIAL_ALLOCATION = "partial-allocation"
FIFO = "fifo"

POLICIES: Mapping[str, Policy] = {
    TOTAL_RATE: Policy(Sense.MAX),
    MAX_MIN: Policy(Sense.MAX),
    MAKESPAN: Policy(Sense.MIN),
    FINISH_TIME: Policy(Sense.MIN),
    RATE_PER_COST: Policy(Sense.MAX),
    NASH: Policy(Sense.MAX, mechanisms=(PARTIAL_ALLOCATION,)),
    HARMONIC: Policy(Sense.MIN),
    COST: Policy(Sense.MIN),
    HIERARCHICAL: Policy(Sense.MAX, inside=(MAX_MIN, FIFO)),
}
"""Policy → its sense and its settings. Objectives: ``docs/problems/resource-allocation.md``."""
EVERY_JOB_RUNS = frozenset({MAKESPAN, FINISH_TIME, NASH, HARMONIC})
"""Policies whose objective exists only where every job has a rate above 0."""
NEEDS_STEPS = frozenset({MAKESPAN, FINISH_TIME})
"""Policies that need the work that each job has left."""
SCALE_FREE = frozenset({MAX_MIN, MAKESPAN, FINISH_TIME})
"""Policies under which prices that are all multiplied by one number prove the same bound."""
