"""Rounds of equal length: who runs is chosen by share over time received, as in Gavel (OSDI'20, section 5).

At the start of a round each GPU type gives its GPUs to the jobs with the highest priority there, gangs whole or not at
all. Who is chosen for the type and region where it runs goes on; others are stopped, or placed. Shares come from a
``ShareRule``; they are computed when jobs have come or gone, and not more often than every ``reset_ms``.
"""

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from mast_opt.core.arrays import FloatArray, IntArray
from mast_opt.core.errors import UsageError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.job_states import JobState
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.policy import EVERY_POLICY, SIZES
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.loop.speeds import REFERENCE, Speeds
from mast_opt.live.policies.central_shares import Demand
from mast_opt.live.policies.pair_table import LEAST_SHARE, PairTable, SharedPace, candidates
from mast_opt.live.policies.round_choice import Cell, Choice
from mast_opt.live.policies.round_params import PackingParams, RoundLength, RoundParams
from mast_opt.live.policies.round_sizes import RoundSizes
from mast_opt.live.policies.round_table import RoundTable
from mast_opt.live.policies.share_rules import OBJECTIVES, Competing, ShareRule
from mast_opt.problems.job_placement.live_fleet.answers import Bid
from mast_opt.problems.job_placement.units import WHOLE

SECOND_MS = 1000
SERVERS = (ev.ServerUp, ev.ServerDown, ev.ServerMoved)
DATA = (ev.CopyEnded, ev.ReplicaDropped)


HOLDING = (JobState.STARTING, JobState.RUNNING)


class Rounds:
    """Rounds under a rule of shares. It looks at neither tiers nor quotas; jobs that may not be stopped go on first.

    Args:
        rule: what gives the shares.
        speeds: of the jobs' models.
        params: see ``RoundLength``.
        name: of the policy.
        by_user: whether the rule looks at whose the jobs are.
    """

    reacts_to: ClassVar[frozenset[type]] = frozenset(
        {ev.Submitted, ev.Stopped, ev.Finished, ev.Failed, ev.Cancelled, *SERVERS, *DATA}
    )

    def __init__(
        self, rule: ShareRule, speeds: Speeds, params: RoundLength, name: str = "gavel", *, by_user: bool = False
    ) -> None:
        self._rule, self._speeds, self.params = rule, speeds, params
        self._packs = isinstance(params, PackingParams) and params.packing
        if self._packs and not speeds.packed:
            raise UsageError("packing needs the table pair_speeds: how fast jobs are that share GPUs")
        self.name = name
        self.every_ms: int | None = None
        self.reads = EVERY_POLICY | {"preemptible"} | ({"tenant", "namespace"} if by_user else set())
        self.reads |= SIZES if rule.resizes else set()
        self._clear()

    def _clear(self) -> None:
        """Begin with no round, no jobs and no shares."""
        self._types: tuple[str, ...] = ()
        self._supply: dict[Cell, int] = {}
        self._table, self._pairs = RoundTable(0), PairTable(0)
        self._pace = SharedPace(self._speeds)
        self._sizes = RoundSizes(self._speeds, aware=self.params.aware, resizes=self._rule.resizes)
        self._new: list[str] = []
        self._target: dict[str, Cell] = {}
        """Cell in which each job runs in this round."""
        self._mates: dict[str, str] = {}
        """Jobs that share GPUs in this round: each of two jobs → the other."""
        self._began_ms = 0
        self._ends_ms: int | None = None
        self._shared_ms: int | None = None
        """Time when the shares were last computed."""
        self._stale = True
        """Whether jobs have come or gone since."""
        self._ended = False
        """Whether jobs have gone since the table was last up to date."""

    def begin(self, snapshot: Snapshot) -> None:
        """Take over the jobs that run as a round in progress."""
        self._clear()
        self._count_servers(snapshot)
        self._new = list(snapshot.jobs)
        kinds = {kind: at for at, kind in enumerate(self._types)}
        for name, record in snapshot.jobs.items():
            if record.shares:
                self._target[name] = (
                    record.region,
                    kinds[snapshot.inventory.server_of[record.shares[0].server].gpu_type],
                )
            if record.partner:
                self._mates[name] = record.partner

    def decide(self, snapshot: Snapshot, actions: Actions) -> None:
        """Begin a round when the last one has ended, and place what it chose."""
        self._take_in(snapshot)
        self._note_pace(snapshot)
        if self._ends_ms is None or snapshot.now_ms >= self._ends_ms or not self._target:
            self._next_round(snapshot, actions)
        else:
            self._place(snapshot, actions)
        self._note_pace(snapshot)
        self.every_ms = None if self._ends_ms is None else self._ends_ms - snapshot.now_ms

    def _take_in(self, snapshot: Snapshot) -> None:
        """Take in the jobs that have come or gone since the last turn, and changes of servers and data."""
        servers = False
        for event in snapshot.news:
            if isinstance(event, ev.Submitted):
                self._new.append(event.job)
                self._stale = True
            elif isinstance(event, (ev.Finished, ev.Failed, ev.Cancelled, ev.Stopped)):
                if event.job not in snapshot.jobs:
                    self._target.pop(event.job, None)
                    self._sizes.drop(event.job)
                    self._part(event.job)
                    self._stale = self._ended = True
            elif isinstance(event, SERVERS):
                servers = True
            elif isinstance(event, DATA):
                self._table.regions.clear()
        if servers:
            self._count_servers(snapshot)
            self._stale = True

    def _count_servers(self, snapshot: Snapshot) -> None:
        """Count the GPUs in service of each region and type; other types than before begin another table."""
        types = tuple(dict.fromkeys(one.gpu_type for one in snapshot.inventory.server_of.values() if one.gpus))
        if types != self._types:
            self._new = [*self._table.names, *self._new]
            self._types, self._table, self._pairs = types, RoundTable(len(types)), PairTable(len(types))
        kinds = {kind: at for at, kind in enumerate(types)}
        self._supply = {}
        for server in snapshot.inventory.in_service():
            if server.gpus:
                cell = server.region, kinds[server.gpu_type]
                self._supply[cell] = self._supply.get(cell, 0) + server.gpus * WHOLE

    # --- a round ---

    def _next_round(self, snapshot: Snapshot, actions: Actions) -> None:
        """Begin a round: credit the last one, compute shares if they are due, choose jobs, stop those that make way."""
        now = snapshot.now_ms
        self._update_table(snapshot)
        self._credit(snapshot)
        if (self._stale or self._rule.every_round) and self._shares_due(now):
            self._compute_shares(snapshot)
        chosen, mates = self._choose(snapshot)
        self._began_ms = now
        self._ends_ms = self._end_of_round(now, chosen)
        staying = self._staying(chosen, mates, snapshot)
        for name in self._target:
            if name not in staying and snapshot.jobs[name].state in HOLDING:
                actions.preempt(name, "end of its round")
        self._target, self._mates = chosen, mates
        self._sizes.resize(snapshot, actions, self._target, grow=False)
        self._place(snapshot, actions)

    def _staying(self, chosen: Mapping[str, Cell], mates: Mapping[str, str], snapshot: Snapshot) -> set[str]:
        """Jobs that go on: where they are, with the same mate, or as the first of two that are to have or have had the
        same GPUs."""
        staying: set[str] = set()
        for name, cell in chosen.items():
            record = snapshot.jobs[name]
            if self._target.get(name) != cell or record.state not in HOLDING:
                continue
            mate = mates.get(name, "")
            if record.partner == mate or not staying.intersection((mate, record.partner)):
                staying.add(name)
        return staying

    def _shares_due(self, now_ms: int) -> bool:
        """Whether shares may be computed now."""
        last = self._shared_ms
        return last is None or not self._target or now_ms - last >= self.params.reset_s * SECOND_MS

    def _end_of_round(self, now_ms: int, chosen: Mapping[str, Cell]) -> int | None:
        """End of a round that begins now; None if there is nothing to come back for."""
        return now_ms + self.params.round_s * SECOND_MS if len(self._table) else None

    def _credit(self, snapshot: Snapshot) -> None:
        """Note the time that each job, and each pair, has had on its type in the round that ends."""
        for name, (_, kind) in self._target.items():
            record = snapshot.jobs[name]
            if record.state is not JobState.RUNNING:
                continue
            mate = self._mates.get(name, "")
            if not mate or record.partner != mate:
                self._table.received[self._table.at[name], kind] += self._paid_ms(snapshot, (record,), kind)
            elif (name, mate) in self._pairs.at:
                paid_ms = self._paid_ms(snapshot, (record, snapshot.jobs[mate]), kind)
                self._pairs.received[self._pairs.at[name, mate], kind] += paid_ms

    def _paid_ms(self, snapshot: Snapshot, records: Sequence[JobRecord], kind: int) -> float:
        """Time in the round that ends which counts for a job, or a pair."""
        return snapshot.now_ms - max(self._began_ms, *(record.since_ms for record in records))

    def _update_table(self, snapshot: Snapshot) -> None:
        """Drop the jobs that have gone from the table of rounds, and add those that have come."""
        if self._ended:
            self._table.keep(snapshot.jobs)
            self._pairs.keep(self._table.at)
            self._ended = False
        half_ms = self.params.round_s * SECOND_MS / 2
        new = [name for name in self._new if name in snapshot.jobs and name not in self._table.at]
        if new:
            records = [snapshot.jobs[name] for name in new]
            for record in records:
                self._sizes.add(record, self._types, max(self._supply.values(), default=0))
            needs, rates = zip(*(self._sizes.row(record, self._types) for record in records), strict=True)
            need = np.array(needs, np.int64)
            self._table.add(new, np.where(need > 0, np.array(rates), 0.0), need, half_ms)
        self._new = []

    def _compute_shares(self, snapshot: Snapshot) -> None:
        """Compute the share of the time that each job is to have on each GPU type, by the policy's rule."""
        table, now, half_ms = self._table, snapshot.now_ms, self.params.round_s * SECOND_MS / 2
        elapsed = 0 if self._shared_ms is None else now - self._shared_ms
        table.deficit += table.share * elapsed - (table.received - half_ms)
        table.received[:] = half_ms
        self._pairs.settle(elapsed, half_ms)
        self._shared_ms, self._stale = now, False
        able = np.flatnonzero((table.rate > 0).any(axis=1))
        table.share = np.zeros(table.rate.shape)
        table.has_share[:] = True
        if len(able):
            records = [snapshot.jobs[table.names[at]] for at in able.tolist()]
            gpus = np.zeros(len(self._types))
            for (_, kind), mgpu in self._supply.items():
                gpus[kind] += mgpu / WHOLE
            rate = table.rate[able] if self.params.aware else (table.rate[able] > 0).astype(np.float64)
            pairs = self._candidates(records, snapshot) if self._packs else ()
            jobs = Competing(
                tuple(record.name for record in records),
                Demand(rate, table.need[able] / WHOLE, gpus, *pairs),
                np.array([self._left_s(record, snapshot) for record in records]),
                np.array([(now - record.submitted_ms) / SECOND_MS for record in records]),
                **self._history(records, now),
                sizes=self._sizes.competing(table, able, records, self._target),
            )
            shares = self._rule.shares(jobs)
            table.share[able] = shares[: len(able)]
            if self._rule.resizes:
                self._sizes.choose(table, able, self._rule.tasks)
            self._keep_pairs(able, jobs, shares[len(able) :])

    def _candidates(self, records: Sequence[JobRecord], snapshot: Snapshot) -> tuple[IntArray, FloatArray]:
        """Pairs of jobs that do well on the same GPUs, and how fast they are there."""
        regions = list(dict.fromkeys(region for region, _ in self._supply))
        may_run = np.array([[one in self._regions(record.name, snapshot) for one in regions] for record in records])
        return candidates(records, may_run, self._types, self._speeds)

    def _keep_pairs(self, able: IntArray, jobs: Competing, share: FloatArray) -> None:
        """Keep the pairs of jobs that are to have a part of the time in rounds."""
        kept = np.flatnonzero((share > LEAST_SHARE).any(axis=1))
        both = jobs.demand.pairs[kept]
        names = [(jobs.names[one], jobs.names[other]) for one, other in both.tolist()]
        positions = able[both] if len(both) else np.zeros((0, 2), np.int64)
        self._pairs.replace(names, positions, share[kept], self.params.round_s * SECOND_MS / 2)

    def _history(self, records: Sequence[JobRecord], now_ms: int) -> dict[str, Any]:
        """Arrays of what jobs have had, whose they are, and where they run."""
        ran_ms = [record.work_ms + (now_ms - record.since_ms if record.shares else 0) for record in records]
        held = [record.attained_mgpu_ms + record.mgpu * (now_ms - record.since_ms) for record in records]
        return {
            "attained_s": np.array(held) / WHOLE / SECOND_MS,
            "ran_s": np.array(ran_ms) / SECOND_MS,
            "tier": np.array([record.spec.tier for record in records], np.int64),
            "user": tuple(record.spec.tenant or record.spec.namespace for record in records),
            "runs_on": np.array([self._target.get(record.name, ("", -1))[1] for record in records], np.int64),
        }

    def _left_s(self, record: JobRecord, snapshot: Snapshot) -> float:
        """Seconds of work that are left, at the reference speed."""
        if record.spec.duration_ms is None:
            return float("nan")
        kind = snapshot.inventory.server_of[record.shares[0].server].gpu_type if record.shares else ""
        done = self._speeds.done(record, kind, snapshot.now_ms)
        if record.state is JobState.RUNNING:
            done -= self._pace.missed(record)
        return max(0, record.spec.duration_ms * REFERENCE - done) / (REFERENCE * SECOND_MS)

    def _order_of_types(self) -> Sequence[int]:
        """Types in the order in which they choose: the fastest first; by chance where speeds are not known."""
        rate = self._table.rate
        if not self.params.aware:
            rng = np.random.Generator(np.random.PCG64([self.params.seed, zlib.crc32(b"types"), self._began_ms]))
            return [int(kind) for kind in rng.permutation(len(self._types))]
        return np.argsort(-rate.mean(axis=0), kind="stable").tolist() if len(rate) else range(len(self._types))

    def _choose(self, snapshot: Snapshot) -> tuple[dict[str, Cell], dict[str, str]]:
        """Cells of the jobs that run in this round, and the pairs that share GPUs."""
        fixed = {
            name: cell
            for name, cell in self._target.items()
            if not snapshot.jobs[name].spec.preemptible and snapshot.jobs[name].state in HOLDING
        }
        choice = Choice(
            self._table, self._pairs, self._supply, self._target, fixed, lambda name: self._regions(name, snapshot)
        )
        for kind in self._order_of_types():
            choice.take(kind, self._may_run, only_shared=self._rule.only_shared)
        return choice.chosen, choice.mates

    def _may_run(self, at: int) -> bool:
        """Whether a job that has been chosen runs."""
        return True

    def _regions(self, name: str, snapshot: Snapshot) -> tuple[str, ...]:
        """Regions where a job may run."""
        regions = self._table.regions.get(name)
        if regions is None:
            regions = self._table.regions[name] = snapshot.admissible(snapshot.jobs[name])
        return regions

    def _place(self, snapshot: Snapshot, actions: Actions) -> None:
        """Place those who are to run and have stopped where they ran; large gangs first."""
        waiting = [name for name in self._target if snapshot.jobs[name].waits]
        for name in sorted(waiting, key=lambda name: -self._asked_mgpu(snapshot.jobs[name])):
            region, kind = self._target[name]
            mate = snapshot.jobs.get(self._mates.get(name, ""))
            if mate is not None and mate.state in HOLDING and region in snapshot.admissible(snapshot.jobs[name]):
                actions.share(name, mate.name)
                continue
            tasks = self._sizes.tasks(snapshot.jobs[name])
            bid = actions.place(name, (region,), self._types[kind], preempt=False, tasks=tasks)
            if isinstance(bid, Bid):
                actions.commit(bid)
            else:  # nowhere do its tasks fit together; it has its turn again in the next round
                del self._target[name]
                self._part(name)
        if not any(snapshot.jobs[name].state is JobState.STOPPING for name in self._target):  # they need their room
            self._sizes.resize(snapshot, actions, self._target, grow=True)

    def _asked_mgpu(self, record: JobRecord) -> int:
        """Milli-GPUs of all tasks that a job is to have, on the type on which they are fewest."""
        return record.asked_mgpu // record.spec.tasks * self._sizes.tasks(record)

    def _part(self, name: str) -> None:
        """Note that a job shares GPUs with no other in this round any more."""
        mate = self._mates.pop(name, None)
        if mate is not None:
            self._mates.pop(mate, None)

    def _note_pace(self, snapshot: Snapshot) -> None:
        """Note which jobs share GPUs from now on, and so are slower."""
        if not self._packs:
            return
        records = ((snapshot.jobs[one], snapshot.jobs[mate]) for one, mate in self._mates.items() if one < mate)
        self._pace.note(
            snapshot.now_ms,
            ((one, mate, self._types[self._target[one.name][1]]) for one, mate in records if one.partner == mate.name),
        )


def gavel(params: RoundParams, speeds: Speeds) -> Rounds:
    """The policy of these parameters."""
    return Rounds(OBJECTIVES[params.objective](params.aware, params.seed), speeds, params)
