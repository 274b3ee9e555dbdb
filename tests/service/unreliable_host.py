"""A host whose answers are lost, doubled, late and out of order, that restarts, and whose view of its work is old."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from mast_opt.live.hosts.simulated import SimulatedLiveHost
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.commands import Command, Start
from mast_opt.live.loop.job_spec import JobSpec


@dataclass(frozen=True)
class HostOdds:
    """Of what may go wrong with a host, each time that it may."""

    lost: float = 0.05
    doubled: float = 0.1
    late: float = 0.2
    restarts: float = 0.01
    stale: float = 0.3


NO_FAULT = HostOdds(0, 0, 0, 0, 0)


class UnreliableHost(SimulatedLiveHost):
    """A host of its own, which outlives the loop. An attempt is started once, however often it is asked for."""

    def __init__(self, rng: np.random.Generator, spec_of: Callable[[str], JobSpec]) -> None:
        super().__init__(spec_of)
        self.rng, self.odds = rng, HostOdds()
        self._late: list[ev.Event] = []
        self._ended: dict[tuple[str, int], ev.Event] = {}
        self._seen: Collection[tuple[str, int]] = ()
        self.starts: Counter[tuple[str, int]] = Counter()

    def point_to(self, spec_of: Callable[[str], JobSpec]) -> UnreliableHost:
        """The loop has begun again."""
        self._spec_of = spec_of
        return self

    def carry_out(self, now_ms: int, command: Command) -> None:
        of = command.job, command.attempt  # type: ignore[union-attr]
        if of in self._ended:
            self._late.append(self._ended[of])
            return
        if isinstance(command, Start) and of not in self._host.running():
            self.starts[of] += 1
        for _ in range(1 + (self.rng.random() < self.odds.doubled)):
            super().carry_out(now_ms, command)

    def reports(self, now_ms: int) -> Sequence[ev.Event]:
        fresh = [*super().reports(now_ms)]
        for event in fresh:
            if isinstance(event, (ev.Stopped, ev.Finished)):
                self._ended[event.job, event.attempt] = event
        held, self._late = self._late, []
        found: list[ev.Event] = []
        for event in (*fresh, *held):
            draw = self.rng.random(3)
            if draw[0] < self.odds.lost:
                continue
            (self._late if draw[1] < self.odds.late else found).append(event)
            if draw[2] < self.odds.doubled:
                self._late.append(event)
        return [found[at] for at in self.rng.permutation(len(found))] if self.odds.late else found

    def observe(self) -> Collection[tuple[str, int]]:
        stale, self._seen = self._seen, set(super().observe())
        return stale if self.rng.random() < self.odds.stale else self._seen

    def truth(self) -> Collection[tuple[str, int]]:
        """What it runs now."""
        return set(super().observe())

    def restart(self) -> None:
        """All work is lost without a report."""
        for job, attempt in super().observe():
            self._ended[job, attempt] = ev.Stopped(job, attempt, 0, 0)
        fresh = SimulatedLiveHost(self._spec_of)
        self._work, self._host, self._late = fresh._work, fresh._host, []

    def next_ms(self) -> int | None:
        times = [time_ms for time_ms in (super().next_ms(), 0 if self._late else None) if time_ms is not None]
        return min(times) if times else None
