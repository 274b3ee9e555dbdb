"""Strategy of twine (task reassignment): how it divides its time and which operators it draws on an instance."""

from __future__ import annotations

from dataclasses import dataclass

from mast_opt.problems.search.strategy import Strategy
from mast_opt.problems.task_reassignment.twine.annealing.kernel import OperatorShares
from mast_opt.problems.task_reassignment.twine.params import ScheduleParams, TwineParams
from mast_opt.problems.task_reassignment.twine.state import ROUND


@dataclass(frozen=True)
class TwineStrategy(Strategy):
    """Strategy of one search: what the size of the instance decides."""

    schedule: ScheduleParams
    """How the time is divided among coolings."""
    shares: OperatorShares
    """Shares of the operators."""
    away: float
    """Price of a process that is not on today's machine, in temperatures."""
    hot_rounds: float
    """Rounds of a cooling from hot, unless that takes less or more than its share of the time."""

    @property
    def words(self) -> str:
        """Words for the message of the solution."""
        kind = "coolings race" if self.schedule.race else "one long cooling"
        return f"{kind} and being away costs {self.away:g} temperatures" if self.away else kind


def choose_strategy(processes: int, machines: int, listed: bool, params: TwineParams) -> TwineStrategy:
    """The strategy for an instance of this size; ``listed``: with lists of similar processes."""
    operators, prices = params.operators, params.prices
    shares = OperatorShares(
        swaps=operators.swaps,
        same_service=operators.same_service if listed else operators.same_service_unlisted,
        ejections=operators.ejections,
        ways_home=operators.ways_home,
        similar=operators.similar_swaps,
    )
    return TwineStrategy(
        schedule=params.few if processes < params.many_processes else params.many,
        shares=shares,
        away=prices.away if processes >= prices.away_processes * machines else 0.0,
        hot_rounds=params.changes_per_process * processes / ROUND,
    )
