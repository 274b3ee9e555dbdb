"""Shares in the middle of all best ones: linear programs of which many answers are best, solved by interior point.

A vertex gives some jobs all and others nothing where the middle gives each a part; rounds then follow it with shorter
waits. Gavel's own simulator takes what an interior-point solver gives, which is such a point.
"""

from dataclasses import dataclass, field

import numpy as np

from mast_opt.core.arrays import BoolArray, FloatArray, IntArray
from mast_opt.core.errors import BackendError
from mast_opt.core.solve_result import SolveParams, SolveResult, Status
from mast_opt.problems import backends
from mast_opt.problems.mip import Mip, MipBuilder

INTERIOR = SolveParams(threads=1, options=(("solver", "ipm"), ("run_crossover", "off"), ("presolve", "off")))
"""Interior point without crossover, so that the answer is no vertex; one thread, so that it is the same each time."""
VERTEX = SolveParams(threads=1)
"""Parameters for programs on which interior point fails."""
TOLERANCE = 1e-3
"""Relative width at which the search for the least finish-time ratio ends."""


@dataclass(frozen=True, eq=False)
class Demand:
    """Jobs that share GPU types over time. J counts jobs, P pairs, G types."""

    rate: FloatArray
    """[J, G] at which each job works on each type; 0 where it cannot."""
    need: FloatArray
    """[J, G] GPUs that it holds there."""
    gpus: FloatArray
    """GPUs of each type, [G]."""
    pairs: IntArray = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    """[P, 2] jobs that may have the same GPUs; both need as many."""
    pair_rate: FloatArray = field(default_factory=lambda: np.zeros((0, 2, 0)))
    """[P, 2, G] at which each of the two works then; 0 for both where they are not paired."""

    @property
    def paired(self) -> BoolArray:
        """[P, G] whether each pair of jobs runs on each GPU type."""
        return np.asarray((self.pair_rate > 0).all(axis=1)) if len(self.pairs) else np.zeros((0, len(self.gpus)), bool)


def largest_fraction(demand: Demand, fair: FloatArray) -> FloatArray:
    """[J + P, G] shares of the time under which every job works at least at t times its ``fair`` rate [J], for the
    largest t; those of pairs follow those of jobs alone. Raises BackendError if the solver finds none."""
    shares = _solve(demand, fair, np.zeros(len(fair)), grow=True)
    if shares is None:
        raise BackendError("no shares were found, although no shares at all would do")
    return shares


def least_ratio(demand: Demand, left_s: FloatArray, elapsed_s: FloatArray, alone_s: FloatArray) -> FloatArray:
    """[J + P, G] shares for the least ρ so that no job ends later after its submission than ρ times ``alone_s``; of
    these, those that have most to spare.

    Args:
        left_s: [J] work that is left, in seconds at rate 1.
        elapsed_s: [J] since submission.
        alone_s: [J] above 0; from submission to end with a part of the GPUs of its own.
    """

    def rates(ratio: float) -> FloatArray:
        return left_s / (ratio * alone_s - elapsed_s)

    low = float((elapsed_s / alone_s).max())
    high = max(1.0, 2 * low)
    while at_least(demand, rates(high)) is None:
        low, high = high, 2 * high
    while high - low > TOLERANCE * high:
        middle = (low + high) / 2
        if at_least(demand, rates(middle)) is None:
            low = middle
        else:
            high = middle
    return largest_fraction(demand, rates(high))


def at_least(demand: Demand, rate: FloatArray) -> FloatArray | None:
    """[J + P, G] shares under which every job works at least at its ``rate`` [J]; None if there are none."""
    return _solve(demand, np.ones(len(rate)), rate, grow=False)


def _solve(demand: Demand, unit: FloatArray, least: FloatArray, *, grow: bool) -> FloatArray | None:
    """[J + P, G] shares X under which every job works, in multiples of its ``unit`` [J], at ``least`` or more, plus a
    common amount that is as large as it can be if ``grow``; None if there are none."""
    jobs, types = demand.rate.shape
    job, kind = np.nonzero(demand.rate > 0)
    pair, pair_kind = np.nonzero(demand.paired)
    runs, where = np.r_[job, jobs + pair], np.r_[kind, pair_kind]
    both = demand.pairs[pair].reshape(-1, 2)
    member, first = np.r_[job, both[:, 0], both[:, 1]], len(job) + np.arange(len(pair))
    column = np.r_[np.arange(len(job)), first, first]
    pair_rate = demand.pair_rate[pair, :, pair_kind] if len(pair) else np.zeros((0, 2))
    worth = np.r_[demand.rate[job, kind], pair_rate[:, 0], pair_rate[:, 1]] / unit[member]
    need = demand.need[np.r_[job, both[:, 0]], where]
    scale = float(worth.max(initial=1e-300)) if grow else 1.0
    m = MipBuilder("shares")
    x = m.columns("share", [[str(at) for at in range(len(runs))]])
    m.rows("job", [[str(j) for j in range(jobs)]], upper=1.0).add(member, x[column], np.ones(len(member)))
    m.rows("gpus", [[str(g) for g in range(types)]], upper=demand.gpus).add(where, x, need)
    work = m.rows("work", [[str(j) for j in range(jobs)]], lower=least / scale)
    work.add(member, x[column], worth / scale)
    if grow:
        t = m.columns("least", [["t"]])
        work.add(np.arange(jobs), np.repeat(t, jobs), -np.ones(jobs))
        m.term("least", t, np.ones(1))
    result = _result(m.build({"least": -1.0} if grow else {}))
    if result.x is None:
        return None
    found = np.zeros((jobs + len(demand.pairs), types))
    found[runs, where] = np.clip(result.x[: len(runs)], 0.0, 1.0)
    return found


def _result(program: Mip) -> SolveResult:
    """An optimum of a policy's program of shares, or the proof that there is none. Raises BackendError if neither way
    of solving gives one.
    """
    highs = backends.get("highs")
    try:
        result = highs.solve(program, INTERIOR)
    except BackendError:
        result = highs.solve(program, VERTEX)
    if result.status not in (Status.OPTIMAL, Status.INFEASIBLE):
        result = highs.solve(program, VERTEX)
    if result.status not in (Status.OPTIMAL, Status.INFEASIBLE):
        raise BackendError(f"the shares were not solved for: {result.status.value}, {result.message}")
    return result
