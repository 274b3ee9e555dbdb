"""Local search of ras (server assignment): passes over the reservations in random order, with a look at the clock."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.problems.server_assignment.problem import Ints
from mast_opt.problems.server_assignment.ras.operators.reservation_reoptimise import reoptimise_reservation, settle
from mast_opt.problems.server_assignment.ras.operators.transfers import transfer_servers
from mast_opt.problems.server_assignment.ras.params import LocalSearchParams
from mast_opt.problems.server_assignment.ras.state import RasArrays, RasState, lacking

CHUNK = 500
"""Number of pairs that reservations choose among between two looks at the clock, about."""


class LocalSearch:
    """Local search over reservations; every pass changes the state that it is given."""

    def __init__(
        self, fleet: RasArrays, rng: np.random.Generator, stopped: Callable[[], bool], params: LocalSearchParams
    ) -> None:
        """``stopped`` says whether to stop; it is asked before every portion of work."""
        self._fleet, self._rng, self._stopped, self._params = fleet, rng, stopped, params

    def settle(self, state: RasState) -> None:
        """Let all reservations fill what they lack and give up what they have too much, at the levels that they
        have."""
        for part in self._parts(np.arange(len(self._fleet.asked))):
            if self._stopped():
                return
            settle(self._fleet, state, part, self._params.levels_above, self._params.fill_portions)

    def improve(self, state: RasState, who: Ints, hint: FloatArray, stocks: FloatArray, enough: float) -> None:
        """Let some reservations choose again, with stocks at their prices ([K]) and then free; again where that saves
        more than ``enough``. Then those that lack something take from others. ``hint``: [Q] levels to try."""
        parts, nothing = self._parts(who), np.zeros_like(stocks)
        for prices in (stocks, nothing) if stocks.any() else (nothing,):
            for _ in range(self._params.repeats):
                gain = 0.0
                for part in parts:
                    if self._stopped():
                        return
                    gain += reoptimise_reservation(
                        self._fleet, state, part, hint, prices, self._params.level_tries, self._params.fill_portions
                    )
                if gain <= enough:
                    break
        self._take(state)

    def _take(self, state: RasState) -> None:
        """Let reservations that lack something take from others, those that lack most first. The kernel is called once
        even if none does, so that it is compiled early."""
        params, lack = self._params, lacking(self._fleet, state)
        for q in np.argsort(-lack, kind="stable")[: max(1, np.count_nonzero(lack))].tolist():
            for _ in range(params.transfer_calls):
                if self._stopped():
                    break
                if transfer_servers(self._fleet, state, q, params.transfers, params.transfer_failures) <= 0:
                    break

    def _parts(self, who: Ints) -> list[Ints]:
        """Portions of the reservations, in random order and of about equal work."""
        pairs = int(np.diff(self._fleet.start)[who].sum())
        return np.array_split(self._rng.permutation(who), max(1, min(pairs // CHUNK, len(who))))
