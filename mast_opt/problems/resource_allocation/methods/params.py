"""Parameters of the methods that solve resource allocation, with effect, range and reason of each default."""

from dataclasses import dataclass
from typing import ClassVar

from mast_opt.problems.search.params import Params, parameter


@dataclass(frozen=True)
class AllocationParams(Params):
    """Parameters of the methods of resource allocation, whichever backend solves their programs."""

    iteration_gap: ClassVar[float] = 1e-6
    """Gap at which the iteration of nash or harmonic ends, also where a larger gap is asked for: relative to the
    objective and, for nash, of the mean logarithm of the rates (from a tenth of it on where the mean is near 0). What
    the exponential of nash is needed for, the parts that jobs keep, takes as much."""
    finish_time_gap: ClassVar[float] = 1e-9
    """Gap at which the iteration of finish-time-fairness ends, which converges quadratically."""
    most_rounds: int = parameter(
        80,
        "Linear programs of an iteration at most; the gap is then what it is.",
        "Set by hand.",
        low=1,
    )
    first_tangents: int = parameter(
        12,
        "Tangents of each job in the first program of nash and harmonic.",
        "Set by hand.",
        low=1,
    )
    least_tangent: ClassVar[float] = 0.02
    """Rate of the first of these tangents, as a part of the job's largest rate; the others follow in equal ratios."""
    direct_configurations: int = parameter(
        20_000,
        "Configurations up to which all are in the first program; with more, those that pay join round by round.",
        "Set by hand.",
        low=0,
    )
    first_configurations: ClassVar[int] = 4
    """Configurations of each job in the first program where not all are there, and as many in which it runs alone."""
    joining_configurations: ClassVar[int] = 6
    """Configurations of each job that join in a round at most."""
    pop: int = parameter(
        1,
        "Parts of the jobs that are solved by themselves first (POP), each with its share of every resource; 1: none.",
        "All together is exact. Parts are for instances that take too long.",
        low=1,
    )
    pop_rounds: int = parameter(
        3,
        "Rounds of column generation over all jobs after the parts, from what these use; 0: the parts side by side, as "
        "always under finish-time-fairness, nash and harmonic.",
        "Two lost 0.2% of the first level in 8 parts of 384 jobs, three 0.002%; one run.",
        low=0,
    )
