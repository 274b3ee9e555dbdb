"""Rounds: from shares of the time to who runs now, round after round, so that what each has had follows its share.

A configuration runs whole or not at all in a round, a job in at most one, and configurations keep to the capacities.
``by_priority`` is Gavel's mechanism: highest share over rounds received first. ``most_owed`` chooses, exactly, the
round that pays back most of what is owed. For it the shortfall is bounded wherever some rounds have the shares as their
average: with R configurations running at most,

    ‖owed after n rounds‖₂ ≤ √(n · ((1 + 2·stay)·R − ‖share‖₂²))

so that each configuration has had its share up to O(1/√n) of the time. Proof: with p = owed + share, p·ran + stay·R is
at least p·share, and ‖p − ran‖² = ‖owed‖² + 2·p·(share − ran) − ‖share‖² + ‖ran‖². Such rounds exist where every
configuration has one job and one unit of one resource. For gangs they need not exist: two jobs of 3 GPUs on 4 GPUs may
have shares of 2/3 each as far as GPU-time goes, but one of them always waits.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mast_opt.core.arrays import BoolArray, FloatArray, IntArray
from mast_opt.core.errors import BackendError, UsageError
from mast_opt.core.solve_result import SolveParams
from mast_opt.live.policies.arguments import numbers
from mast_opt.problems import backends
from mast_opt.problems.mip import MipBuilder
from mast_opt.problems.resource_allocation import ResourceAllocation

EXACT = SolveParams(gap=1e-9, threads=1)
"""How a round is solved for; one thread, so that it is the same each time."""
SLACK = 1e-9
"""Relative excess over a capacity that is rounding."""


@dataclass(frozen=True, eq=False)
class Turns:
    """Configurations that take turns. C counts them, K resources, J jobs.

    Raises:
        UsageError: arrays of other shapes, or shares that are not from 0 to 1.
    """

    share: FloatArray
    """[C] part of the rounds that each is to have."""
    amount: FloatArray
    """[C, K] of each resource while it runs."""
    capacity: FloatArray
    """Capacity of each GPU type, [K]."""
    member: tuple[IntArray, IntArray]
    """Configurations [M] and jobs [M] that run in them, pair by pair."""

    def __post_init__(self) -> None:
        share = numbers("share", self.share, (None,))
        if (share > 1 + SLACK).any():
            raise UsageError(f"share[{int(np.argmax(share))}] is {share.max():g}; expected numbers from 0 to 1")
        capacity = numbers("capacity", self.capacity, (None,))
        amount = numbers("amount", self.amount, (len(share), len(capacity)))
        for name, value in (("share", share), ("capacity", capacity), ("amount", amount)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "member", tuple(np.asarray(part, np.int64) for part in self.member))

    @classmethod
    def of_types(cls, share: ArrayLike, gpus: ArrayLike, gang: ArrayLike = 1.0) -> "Turns":
        """Turns of jobs on GPU types; a configuration for each job and type, row by row.

        Args:
            share: [J, G] of the time that each job has on each type.
            gpus: [G] GPUs of each type.
            gang: [J] GPUs that each job holds.
        """
        supply = numbers("gpus", gpus, (None,))
        shares = numbers("share", share, (None, len(supply)))
        size = numbers("gang", gang, (len(shares),), above=0.0)
        job, kind = (axis.ravel() for axis in np.indices(shares.shape))
        amount = size[job, None] * (kind[:, None] == np.arange(len(supply)))
        return cls(shares.ravel(), amount, supply, (np.arange(len(job)), job))

    @classmethod
    def of_allocation(cls, problem: ResourceAllocation, share: FloatArray) -> "Turns":
        """Turns in rounds of the configurations of a resource allocation.

        Args:
            problem: with fractional shares.
            share: [C] of a plan.
        """
        amount = np.zeros((len(problem.configurations), len(problem.resources)))
        amount[problem.uses.configuration, problem.uses.resource] = problem.uses.amount
        member = problem.members.configuration, problem.members.job
        return cls(np.clip(share, 0.0, 1.0), amount, problem.resources.amount, member)

    @property
    def jobs(self) -> int:
        """Number of jobs that take turns, J, up to the last job with a configuration."""
        return int(self.member[1].max(initial=-1)) + 1


@dataclass(frozen=True, eq=False)
class Progress:
    """Time that the configurations have had so far, [C] each."""

    received: FloatArray
    """Rounds in which each has run."""
    owed: FloatArray
    """Rounds that each lacks, ≥ 0: in any stretch of rounds, what it had is no less than its shares there by more than
    that."""
    running: BoolArray
    """Mask of the configurations that ran in the last round."""

    @classmethod
    def start(cls, configurations: int) -> "Progress":
        """Progress of the configurations before the first round."""
        return cls(np.zeros(configurations), np.zeros(configurations), np.zeros(configurations, np.bool_))

    def after(self, turns: Turns, ran: BoolArray) -> "Progress":
        """Progress after a round in which these ran."""
        return Progress(self.received + ran, np.maximum(self.owed + turns.share - ran, 0.0), ran)

    def switches(self, ran: BoolArray) -> int:
        """Configurations that such a next round stops."""
        return int((self.running & ~ran).sum())


Rule = Callable[[Turns, Progress], BoolArray]
"""(turns, progress) → [C] who runs in the next round."""


def by_priority(turns: Turns, progress: Progress, *, stay: float = 0.0) -> BoolArray:
    """[C] who runs next: by share over rounds received, each that fits into what those before it leave.

    Those who have had nothing come first; ties go to those who run, then by share, then by position. A
    configuration without a share does not run.

    Args:
        stay: rounds that are taken off what a running configuration has received, so that it stays longer.
    """
    had = np.maximum(progress.received - stay * progress.running, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        priority = np.where(had > 0, turns.share / had, np.inf)
    order = np.lexsort((-turns.share, ~progress.running, -priority))
    start, job = _jobs_of(turns)
    idle = np.ones(turns.jobs, np.bool_)
    left = turns.capacity * (1 + SLACK)
    chosen = np.zeros(len(turns.share), np.bool_)
    for one in order[turns.share[order] > 0].tolist():
        mine = job[start[one] : start[one + 1]]
        if idle[mine].all() and (turns.amount[one] <= left).all():
            chosen[one] = True
            idle[mine] = False
            left = left - turns.amount[one]
    return chosen


def most_owed(turns: Turns, progress: Progress, *, stay: float = 0.0, solver: str = "highs") -> BoolArray:
    """[C] who runs next: the round of the highest Σ of rounds owed, this one included.

    Args:
        stay: rounds that are added to what a running configuration is owed, so that it stays longer.
        solver: a MIP backend.

    Raises:
        BackendError: the solver did not prove an optimum.
    """
    worth = np.where(turns.share > 0, progress.owed + turns.share + stay * progress.running, 0.0)
    able = np.flatnonzero((worth > 0) & (turns.amount <= turns.capacity * (1 + SLACK)).all(axis=1))
    m = MipBuilder("round")
    run = m.columns("run", [[str(one) for one in able.tolist()]], upper=1.0, integral=True)
    at = np.full(len(turns.share), -1)
    at[able] = run
    configuration, job = turns.member
    here = at[configuration] >= 0
    m.rows("one", [[str(j) for j in range(turns.jobs)]], upper=1.0).add(job[here], at[configuration[here]])
    held, resource = np.nonzero(turns.amount[able])
    m.rows("capacity", [[str(k) for k in range(len(turns.capacity))]], upper=turns.capacity * (1 + SLACK)).add(
        resource, run[held], turns.amount[able[held], resource]
    )
    m.term("owed", run, worth[able])
    result = backends.get(solver).solve(m.build({"owed": -1.0}), EXACT)
    if result.x is None:
        raise BackendError(f"the round was not solved: {result.status.value}, {result.message}")
    chosen = np.zeros(len(turns.share), np.bool_)
    chosen[able] = result.x > 0.5
    return chosen


def play(turns: Turns, rounds: int, rule: Rule = by_priority) -> tuple[Progress, int]:
    """Progress after so many rounds under a rule, and how many configurations were stopped on the way."""
    progress, switches = Progress.start(len(turns.share)), 0
    for _ in range(rounds):
        ran = rule(turns, progress)
        switches += progress.switches(ran)
        progress = progress.after(turns, ran)
    return progress, switches


def _jobs_of(turns: Turns) -> tuple[IntArray, IntArray]:
    """The jobs of the configurations that take turns, one after another: starts [C + 1], jobs."""
    configuration, job = turns.member
    start = np.zeros(len(turns.share) + 1, np.int64)
    np.cumsum(np.bincount(configuration, minlength=len(turns.share)), out=start[1:])
    return start, job[np.argsort(configuration, kind="stable")]
