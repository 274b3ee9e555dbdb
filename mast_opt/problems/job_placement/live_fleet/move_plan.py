"""Plans of the live fleet (job placement) that move running jobs: budget, moves, and what they make room for."""

from dataclasses import dataclass, field

from mast_opt.core.arguments import a_price, a_whole, optional
from mast_opt.problems.job_placement.live_fleet.answers import Bid
from mast_opt.problems.job_placement.live_fleet.types import Share


@dataclass(frozen=True)
class MoveBudget:
    """The most that the moves of one plan may be, together."""

    moves: int | None = None
    """Jobs that are moved; None for no limit."""
    gpu_hours: float | None = None
    """GPU-hours lost; None for no limit."""
    tries: int = 20
    """Sets of moves that are tried for one waiting job."""
    candidates: int = 200
    """Jobs that are tried for one move where no job waits."""
    exchanges: int = 1_000
    """Jobs that are tried, for one waiting job, as the one that changes places with a smaller one; 0 for no
    exchanges."""

    def __post_init__(self) -> None:
        optional(a_whole(0))("moves of a budget", self.moves)
        optional(a_price)("gpu_hours of a budget", self.gpu_hours)
        a_whole(0)("exchanges of a budget", self.exchanges)
        for name in ("tries", "candidates"):
            a_whole(1)(f"{name} of a budget", getattr(self, name))


@dataclass(frozen=True)
class JobMove:
    """A running job leaves its place and goes on in another one."""

    job: str
    source: tuple[Share, ...]
    target: tuple[Share, ...]
    gpu_hours: float
    """GPU-hours that the move loses."""
    step: int = 0
    """Moves of one step are made together: their jobs all stop before the first of them goes on. Steps follow one
    another in the order of the plan."""


@dataclass(frozen=True)
class MovePlan:
    """Moves of running jobs in steps, whose targets are free when their turn comes and their own jobs have stopped, and
    the waiting jobs that have room when all have been made. Nothing of it has happened until ``Fleet.apply``."""

    moves: tuple[JobMove, ...]
    starts: tuple[Bid, ...]
    """Bids of the waiting jobs that fit after the moves, those that need none included."""
    refused: tuple[str, ...]
    """The other waiting jobs."""
    value_gained: float
    """GPUs of the free capacity, without waiting jobs, that arrivals like those so far could fill in addition."""
    version: int = field(compare=False)
    """Version of the fleet that made it."""
    fleet: str = field(compare=False, repr=False)
    """Name of the fleet that made it; no other one takes the plan."""

    @property
    def gpu_hours(self) -> float:
        """GPU-hours that all moves of the fleet's jobs lose."""
        return sum(move.gpu_hours for move in self.moves)
