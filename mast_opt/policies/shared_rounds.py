"""Rounds of equal length: who runs is chosen by share over time received, as in Gavel (OSDI'20, section 5).

At the start of a round each GPU type gives its GPUs to the jobs with the highest priority there, gangs whole or not at
all. Who is chosen for the type and region where it runs goes on; others are stopped, or placed. Shares come from a
``ShareRule``; they are computed when jobs have come or gone, and not more often than every ``reset_ms``.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mast_opt.core.arrays import IntArray
from mast_opt.core.errors import UsageError
from mast_opt.job_placement.live_fleet.answers import Bid
from mast_opt.job_placement.units import WHOLE
from mast_opt.loop import events as ev
from mast_opt.loop.job_states import JobState
from mast_opt.loop.jobs import JobRecord
from mast_opt.loop.policy import Desk, View
from mast_opt.loop.speeds import REFERENCE, Speeds
from mast_opt.policies.central_shares import Demand
from mast_opt.policies.round_table import RoundTable
from mast_opt.policies.share_rules import OBJECTIVES, Competing, ShareRule

SECOND_MS = 1000
SERVERS = (ev.ServerUp, ev.ServerDown, ev.ServerMoved)
DATA = (ev.CopyEnded, ev.ReplicaDropped)


@dataclass(frozen=True)
class RoundLength:
    """Parameters of every policy that plays rounds.

    Args:
        aware: whether the policy knows how fast each job is on each type; if not, it takes all types for equal.
        round_s: length of a round, s.
        reset_s: least time between two computations of shares, s.
        seed: of what is left to chance.
    """

    aware: bool = True
    round_s: int = 360
    reset_s: int = 1920
    seed: int = 0

    def __post_init__(self) -> None:
        if self.round_s < 1 or self.reset_s < 0:
            raise UsageError(f"round_s and reset_s are {self.round_s} and {self.reset_s}; expected at least 1 and 0")


@dataclass(frozen=True)
class RoundParams(RoundLength):
    """Parameters of ``gavel``.

    Args:
        objective: what the shares are to reach: ``max-min``, ``finish-time``, ``makespan``, ``fifo`` or ``allox``.
    """

    objective: str = "max-min"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.objective not in OBJECTIVES:
            raise UsageError(f"objective is {self.objective!r}; expected one of {', '.join(OBJECTIVES)}")


Cell = tuple[str, int]
"""Region and position of a GPU type."""


class Rounds:
    """Rounds under a rule of shares. It looks at neither tiers nor quotas; jobs that may not be stopped go on first.

    Args:
        rule: what gives the shares.
        speeds: of the jobs' models.
        params: see ``RoundLength``.
        name: of the policy.
    """

    reacts_to: ClassVar[frozenset[type]] = frozenset(
        {ev.Submitted, ev.Stopped, ev.Finished, ev.Failed, ev.Cancelled, *SERVERS, *DATA}
    )

    def __init__(self, rule: ShareRule, speeds: Speeds, params: RoundLength, name: str = "gavel") -> None:
        self._rule, self._speeds, self.params = rule, speeds, params
        self.name = name
        self.every_ms: int | None = None
        self._clear()

    def _clear(self) -> None:
        self._types: tuple[str, ...] = ()
        self._supply: dict[Cell, int] = {}
        self._table = RoundTable(0)
        self._new: list[str] = []
        self._target: dict[str, Cell] = {}
        """Who runs in this round, and where."""
        self._began_ms = 0
        self._ends_ms: int | None = None
        self._shared_ms: int | None = None
        """When the shares were last computed."""
        self._stale = True
        """Whether jobs have come or gone since."""
        self._ended = False
        """Whether jobs have gone since the table was last up to date."""

    def begin(self, view: View) -> None:
        """See ``Policy.begin``."""
        self._clear()
        self._count_servers(view)
        self._new = list(view.jobs)
        kinds = {kind: at for at, kind in enumerate(self._types)}
        for name, record in view.jobs.items():
            if record.shares:
                self._target[name] = record.region, kinds[view.inventory.server_of[record.shares[0].server].gpu_type]

    def decide(self, view: View, desk: Desk) -> None:
        """See ``Policy.decide``."""
        self._take_in(view)
        if self._ends_ms is None or view.now_ms >= self._ends_ms or not self._target:
            self._next_round(view, desk)
        else:
            self._place(view, desk)
        self.every_ms = None if self._ends_ms is None else self._ends_ms - view.now_ms

    def _take_in(self, view: View) -> None:
        servers = False
        for event in view.news:
            if isinstance(event, ev.Submitted):
                self._new.append(event.job)
                self._stale = True
            elif isinstance(event, (ev.Finished, ev.Failed, ev.Cancelled, ev.Stopped)):
                if event.job not in view.jobs:
                    self._target.pop(event.job, None)
                    self._stale = self._ended = True
            elif isinstance(event, SERVERS):
                servers = True
            elif isinstance(event, DATA):
                self._table.regions.clear()
        if servers:
            self._count_servers(view)
            self._stale = True

    def _count_servers(self, view: View) -> None:
        types = tuple(sorted({server.gpu_type for server in view.inventory.server_of.values() if server.gpus}))
        if types != self._types:
            self._new = [*self._table.names, *self._new]
            self._types, self._table = types, RoundTable(len(types))
        kinds = {kind: at for at, kind in enumerate(types)}
        self._supply = {}
        for name in view.inventory.up:
            server = view.inventory.server_of[name]
            if server.gpus:
                cell = server.region, kinds[server.gpu_type]
                self._supply[cell] = self._supply.get(cell, 0) + server.gpus * WHOLE

    # --- a round ---

    def _next_round(self, view: View, desk: Desk) -> None:
        now = view.now_ms
        self._update_table(view)
        self._credit(view)
        if (self._stale or self._rule.every_round) and self._shares_due(now):
            self._compute_shares(view)
        chosen = self._choose(view)
        self._began_ms = now
        self._ends_ms = self._end_of_round(now, chosen)
        for name, cell in self._target.items():
            if chosen.get(name) != cell and view.jobs[name].state in (JobState.STARTING, JobState.RUNNING):
                desk.preempt(name, "end of its round")
        self._target = chosen
        self._place(view, desk)

    def _shares_due(self, now_ms: int) -> bool:
        """Whether shares may be computed now."""
        last = self._shared_ms
        return last is None or not self._target or now_ms - last >= self.params.reset_s * SECOND_MS

    def _end_of_round(self, now_ms: int, chosen: Mapping[str, Cell]) -> int | None:
        """When a round that begins now ends; None if there is nothing to come back for."""
        return now_ms + self.params.round_s * SECOND_MS if len(self._table) else None

    def _credit(self, view: View) -> None:
        """Note the time that each job has had on its type in the round that ends."""
        for name, (_, kind) in self._target.items():
            record = view.jobs[name]
            if record.state is JobState.RUNNING:
                began = max(self._began_ms, record.since_ms)
                self._table.received[self._table.at[name], kind] += view.now_ms - began

    def _update_table(self, view: View) -> None:
        if self._ended:
            self._table.keep(view.jobs)
            self._ended = False
        half_ms = self.params.round_s * SECOND_MS / 2
        new = [name for name in self._new if name in view.jobs and name not in self._table.at]
        if new:
            records = [view.jobs[name] for name in new]
            need = np.array([self._needs(record) for record in records], np.int64)
            rate = np.array([self._rates(record) for record in records])
            self._table.add(new, np.where(need > 0, rate, 0.0), need, half_ms)
        self._new = []

    def _needs(self, record: JobRecord) -> list[int]:
        """Milli-GPUs of the gang on each type; 0 where it may not run."""
        spec = record.spec
        kinds = dict.fromkeys(self._types, spec.mgpu) if spec.gpu_types is None else spec.gpu_types
        return [spec.tasks * kinds.get(kind, 0) for kind in self._types]

    def _rates(self, record: JobRecord) -> list[float]:
        return [self._speeds.rate(record.spec, kind) / REFERENCE for kind in self._types]

    def _compute_shares(self, view: View) -> None:
        table, now, half_ms = self._table, view.now_ms, self.params.round_s * SECOND_MS / 2
        elapsed = 0 if self._shared_ms is None else now - self._shared_ms
        table.deficit += table.share * elapsed - (table.received - half_ms)
        table.received[:] = half_ms
        self._shared_ms, self._stale = now, False
        able = np.flatnonzero((table.rate > 0).any(axis=1))
        table.share = np.zeros(table.rate.shape)
        table.has_share[:] = True
        if len(able):
            records = [view.jobs[table.names[at]] for at in able.tolist()]
            gpus = np.zeros(len(self._types))
            for (_, kind), mgpu in self._supply.items():
                gpus[kind] += mgpu / WHOLE
            rate = table.rate[able] if self.params.aware else (table.rate[able] > 0).astype(np.float64)
            jobs = Competing(
                tuple(record.name for record in records),
                Demand(rate, table.need[able] / WHOLE, gpus),
                np.array([self._left_s(record, view) for record in records]),
                np.array([(now - record.submitted_ms) / SECOND_MS for record in records]),
                **self._history(records, now),
            )
            table.share[able] = self._rule.shares(jobs)

    def _history(self, records: Sequence[JobRecord], now_ms: int) -> dict[str, Any]:
        """What jobs have had, whose they are, and where they run."""
        ran_ms = [record.work_ms + (now_ms - record.since_ms if record.shares else 0) for record in records]
        held = [record.attained_mgpu_ms + record.mgpu * (now_ms - record.since_ms) for record in records]
        return {
            "attained_s": np.array(held) / WHOLE / SECOND_MS,
            "ran_s": np.array(ran_ms) / SECOND_MS,
            "tier": np.array([record.spec.tier for record in records], np.int64),
            "user": tuple(record.spec.tenant or record.spec.namespace for record in records),
            "runs_on": np.array([self._target.get(record.name, ("", -1))[1] for record in records], np.int64),
        }

    def _left_s(self, record: JobRecord, view: View) -> float:
        """Seconds of work that are left, at the reference speed."""
        if record.spec.duration_ms is None:
            return float("nan")
        done = record.work_ms * REFERENCE
        if record.state is JobState.RUNNING:
            restart = record.spec.restart_ms if record.attempt > 1 else 0
            kind = view.inventory.server_of[record.shares[0].server].gpu_type
            done += max(0, view.now_ms - record.since_ms - restart) * self._speeds.rate(record.spec, kind)
        return max(0, record.spec.duration_ms * REFERENCE - done) / (REFERENCE * SECOND_MS)

    def _order_of_types(self) -> Sequence[int]:
        """Types in the order in which they choose: the fastest first; by chance where speeds are not known."""
        rate = self._table.rate
        if not self.params.aware:
            rng = np.random.Generator(np.random.PCG64([self.params.seed, zlib.crc32(b"types"), self._began_ms]))
            return [int(kind) for kind in rng.permutation(len(self._types))]
        return np.argsort(-rate.mean(axis=0), kind="stable").tolist() if len(rate) else range(len(self._types))

    def _choose(self, view: View) -> dict[str, Cell]:
        """Who runs in this round, and where."""
        table, chosen = self._table, {}
        left = dict(self._supply)
        idle = np.ones(len(table), np.bool_)
        for name, cell in self._target.items():
            record = view.jobs[name]
            if not record.spec.preemptible and record.state in (JobState.STARTING, JobState.RUNNING):
                chosen[name] = cell
                idle[table.at[name]] = False
                left[cell] = left.get(cell, 0) - int(table.need[table.at[name], cell[1]])
        for kind in self._order_of_types():
            order = self._by_priority(kind)
            for at in order[idle[order]].tolist():
                region = self._region_of(at, kind, left, view)
                if region is None:
                    continue
                left[region, kind] -= int(table.need[at, kind])
                idle[at] = False
                if self._may_run(at):
                    chosen[table.names[at]] = region, kind
        return chosen

    def _may_run(self, at: int) -> bool:
        """Whether a job that has been chosen runs."""
        return True

    def _by_priority(self, kind: int) -> IntArray:
        """The jobs that may run on a type, by share over time received; ties by what they are owed, then by share."""
        table = self._table
        share, received = table.share[:, kind], table.received[:, kind]
        priority = share / received
        order = np.lexsort((-share, -table.deficit[:, kind], -priority))
        able = table.rate[:, kind] > 0
        if self._rule.only_shared:
            able &= share > 0
        return order[able[order]]

    def _region_of(self, at: int, kind: int, left: dict[Cell, int], view: View) -> str | None:
        """Where a job would run on a type: where it does, else where least is left over."""
        table = self._table
        name, need = table.names[at], int(table.need[at, kind])
        now = self._target.get(name)
        if now is not None and now[1] == kind and left.get(now, 0) >= need:
            return now[0]
        regions = table.regions.get(name)
        if regions is None:
            regions = table.regions[name] = view.admissible(view.jobs[name])
        fits = [(left[region, kind], region) for region in regions if left.get((region, kind), 0) >= need]
        return min(fits)[1] if fits else None

    def _place(self, view: View, desk: Desk) -> None:
        """Place those who are to run and have stopped where they ran; large gangs first."""
        waiting = [name for name in self._target if view.jobs[name].waits]
        for name in sorted(waiting, key=lambda name: -view.jobs[name].asked_mgpu):
            region, kind = self._target[name]
            bid = desk.place(name, (region,), self._types[kind], preempt=False)
            if isinstance(bid, Bid):
                desk.commit(bid)
            else:  # nowhere do its tasks fit together; it has its turn again in the next round
                del self._target[name]


def gavel(params: RoundParams, speeds: Speeds) -> Rounds:
    """The policy of these parameters."""
    return Rounds(OBJECTIVES[params.objective](params.aware, params.seed), speeds, params)
