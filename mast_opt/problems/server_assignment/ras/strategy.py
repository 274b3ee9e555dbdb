"""Strategy of ras (server assignment): which parts of the algorithm run on an instance."""

from __future__ import annotations

from dataclasses import dataclass

from mast_opt.problems.kind.header import Objective
from mast_opt.problems.search.interface import StoppingCriteria
from mast_opt.problems.search.strategy import Strategy
from mast_opt.problems.server_assignment.ras.params import RasParams


@dataclass(frozen=True)
class RasStrategy(Strategy):
    """Parts of ras that run on an instance, in addition to prices, rounding and local search, which always run."""

    stages: tuple[str, ...]
    """Terms that are minimised one after another; empty for a weighted sum."""
    linear_relaxation: bool
    """True if the linear relaxation is solved exactly before round ``lp_round``, if the gap is still above
    ``lp_gap``."""
    sub_mips: bool
    """True if some reservations are solved exactly together, from round ``sub_mip_round`` on."""
    integer_bound: str
    """The bound with whole servers is computed in ``every round``, or ``by time`` where the clock ends the search."""
    racks: int
    """Reservations whose racks are chosen again at the end, where no limit has been reached."""


def choose_strategy(pairs: int, objective: Objective, stop: StoppingCriteria, params: RasParams) -> RasStrategy:
    """Choose what ras does on an instance with so many pairs of stock and reservation."""
    return RasStrategy(
        stages=objective.order if objective.lexicographic else (),
        linear_relaxation=pairs <= params.lp_pairs,
        sub_mips=pairs <= params.sub_mip_most_pairs,
        integer_bound="by time" if stop.iterations is None else "every round",
        racks=params.rack_reservations,
    )
