"""MAST's decisions at run time (OSDI'24, sections 4 and 5): one global queue, bids of all regions, late binding.

Waiting jobs form classes of jobs that fit in the same places. A class that was refused is not searched for again before
something that it can use becomes free, so that a turn costs what has changed and not what waits.
"""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from mast_opt.core.ranks import Right
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.job_states import JobState
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.policy import CHANGES, EVERY_POLICY, PARTS
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.policies.copies_on_submission import bind_with_copies
from mast_opt.live.policies.easy import SHORTEST_FIRST
from mast_opt.live.policies.head_of_line import ARRIVALS
from mast_opt.live.policies.making_room import MakingRoom
from mast_opt.live.policies.mast_params import COPY, FAIR, HOLD, HOME, LATE, PREEMPTIBLE, SCOPES, SHARE, MastParams
from mast_opt.live.policies.ranked_heads import Rank, RankedHeads
from mast_opt.live.policies.region_loads import RegionLoads
from mast_opt.live.policies.reservations import Reservations, queue_tier
from mast_opt.live.policies.size_order import Key, WaitingClass
from mast_opt.live.policies.waiting_classes import WaitingClasses
from mast_opt.live.policies.whole_servers import WholeServers, packed_bid
from mast_opt.problems.job_placement.fit_times import FOREVER
from mast_opt.problems.job_placement.live_fleet.answers import Bid

SECOND_MS = 1000
NO_DATA = "no region holds all of its data"
DATA = (ev.CopyEnded, ev.ReplicaDropped, ev.DatasetCreated)
"""Events that change where jobs may run."""
_OWN = (ev.Submitted, ev.Placed, ev.StopAsked, ev.Bound, ev.Refused, ev.Promised, ev.PromiseEnded)
"""Events that the policy makes itself, and arrivals: no promise has to be looked at again for them within a round."""


class Mast:
    """Policy of MAST, with the order: tier after quotas and promotions, then most credit, then the oldest. A job that
    fits may pass one that does not."""

    name: str = "mast"
    reacts_to: ClassVar[frozenset[type]] = CHANGES | {ev.ReplicaDropped}
    every_ms: int | None = None

    def __init__(self, params: MastParams | None = None) -> None:
        self.params = params or MastParams()
        self.reclaim, self._weights = self.params.reclaim, self.params.weight_of()
        self._waiting: WaitingClasses
        self._whole: WholeServers
        self._due: dict[Key, WaitingClass] = {}
        """Classes whose head may fit."""
        self._regions: frozenset[str] = frozenset()
        self._seen_growth = 0
        self._loads = RegionLoads(self.params.age_s * SECOND_MS)
        hold = self.params.without_limits == HOLD
        self._promote_ms = self.params.promote_after_s * SECOND_MS
        self._reservations = Reservations(
            self.params.hold_after_s * SECOND_MS if hold else None,
            self._promote_ms,
            MakingRoom(
                self.params.make_room_after_s * SECOND_MS,
                self.params.make_room_share,
                self.params.make_room_of == PREEMPTIBLE,
            ),
        )
        self._unreserved: set[str] = set()
        """Regions where the first job may be another one than that with the reservation."""
        self._came: list[JobRecord] = []
        """Jobs that have come, of which nobody has looked yet in which regions they may be the first."""
        self._stopping: set[str] = set()
        """Jobs that are asked to stop; some have stopped since."""
        self._goes_on = False
        """Whether the last turn was full before everybody was served."""
        self._unreviewed: list[ev.Event] = []
        """Events since promises were last looked at."""
        self._kept_out: dict[str, dict[Key, WaitingClass]] = {}
        """Region → classes that were refused for what is promised there; with quotas only."""
        self._ranked: RankedHeads | None = None
        """Order and refusals by rank; None if the last turn went by age."""

    @property
    def reads(self) -> frozenset[str]:
        """Optional columns of submissions that change what the policy ``mast`` does."""
        home = self.params.bind == HOME or self.params.scope == SCOPES[1]
        return EVERY_POLICY | {PARTS, "tenant", "preemptible"} | ({"home_region"} if home else set())

    def begin(self, snapshot: Snapshot) -> None:
        """Queue the jobs that wait."""
        self._loads.begin(snapshot)
        self._whole = WholeServers()
        home, limits = self.params.scope == "region", self.params.reserve
        self._waiting = WaitingClasses(snapshot, home=home, limits=limits, promote_ms=self._promote_ms)
        self._due, self._regions, self._ranked = {}, frozenset(snapshot.supply_mgpu), RankedHeads()
        self._stopping = {record.name for record in snapshot.jobs.values() if record.state is JobState.STOPPING}
        self._seen_growth = snapshot.reclaimable.count
        if self.params.reserve:
            self._reservations.begin(snapshot)
        for record in snapshot.jobs.values():
            if record.waits:
                self._join(record, snapshot)

    def decide(self, snapshot: Snapshot, actions: Actions) -> None:
        """Take in the news, and serve the queues by rank or by age."""
        self._loads.take_in(snapshot)
        self._take_in(snapshot, actions)
        for record in self._waiting.promoted(snapshot):
            self._join(record, snapshot)
        before_round = self._seen_growth
        self._unreviewed += snapshot.news
        if not (self._goes_on and all(isinstance(one, _OWN) for one in snapshot.news)):
            if self._reservations.active:
                self._reservations.review(self._unreviewed, snapshot, actions)
                self._follow_promises()
            self._unreviewed = []
        if self._by_rank(snapshot):
            self._serve_by_rank(snapshot, actions)
        else:
            self._serve_oldest_first(snapshot, actions)
        if self._reservations.active and not actions.full:
            self._reserve(snapshot, actions)
            next_ms = self._reservations.next_ms(snapshot)
            self.every_ms = None if next_ms is None else next_ms - snapshot.now_ms
        self._goes_on = actions.full
        self._seen_growth = before_round  # in the next turn it is for everybody

    def _serve_oldest_first(self, snapshot: Snapshot, actions: Actions) -> None:
        """Place heads by tier and submission, which never change."""
        for new in self._due.values():
            if not new.regions:
                self._mark_inadmissible(new, snapshot, actions)
        self._due, self._ranked = {}, None
        while not actions.full and (waiting := self._waiting.first_that_may_fit(snapshot)) is not None:
            if self._serve_holder(waiting.tier, snapshot, actions):
                continue
            record = snapshot.jobs[waiting.queue[0][2]]
            best, second = self._best(record, waiting.regions, snapshot, actions)
            if best is None:
                kept = self._reservations.blocked_in(record, snapshot) if self._reservations.active else ()
                self._waiting.refuse(waiting, kept)
            else:
                self._start(waiting, best, second, snapshot, actions)
                if not waiting.queue:
                    self._waiting.forget(waiting)

    def _serve_by_rank(self, snapshot: Snapshot, actions: Actions) -> None:
        """Place heads in an order that changes as tenants get something."""
        ranked = self._ranked = RankedHeads() if self._ranked is None else self._ranked
        while not actions.full:
            self._due.update((one.key, one) for one in ranked.take_back(snapshot))
            self._offer_due(ranked, snapshot, actions)
            head = ranked.pop()
            if head is None:
                break
            rank, name, waiting = head
            record = snapshot.jobs[name]
            if (
                not record.waits  # it had a reservation
                or rank != self._rank(record, snapshot)  # its tenant has got something since
                or self._serve_holder(rank[0], snapshot, actions)
            ):
                self._offer(waiting, ranked, snapshot, actions)
                continue
            fits = self._waiting.may_fit_by_right(waiting)
            best, second = self._best(record, waiting.regions, snapshot, actions) if fits else (None, None)
            if best is None or (best.victims and self._makes_way(record, snapshot)):
                for region in self._reservations.blocked_in(record, snapshot) if self._reservations.active else ():
                    self._kept_out.setdefault(region, {})[waiting.key] = waiting
                if best is not None or self._reservations.bind(record, snapshot):
                    ranked.refuse_once(waiting)
                else:
                    others = "" if snapshot.is_bounded(waiting.tenant) else waiting.tenant  # by right of another type
                    self._refuse(waiting, others if fits else waiting.helper, ranked, snapshot)
                continue
            self._start(waiting, best, second, snapshot, actions)
            self._due[waiting.key] = waiting
        self._due.update((one.key, one) for one in ranked.take_all())  # it is full

    def _start(
        self, waiting: WaitingClass, best: Bid, second: Bid | None, snapshot: Snapshot, actions: Actions
    ) -> None:
        """Place the head of a class."""
        self._waiting.take_head(waiting)
        self._commit(best, second, snapshot, actions)

    def _commit(self, best: Bid, second: Bid | None, snapshot: Snapshot, actions: Actions) -> None:
        """Start a job by its bid, tell the reservations, and wake the classes that may gain by it."""
        victims = actions.commit(best, second)
        self._stopping.update(victims)
        self._waiting.follow(snapshot)
        if self._reservations.active:
            self._reservations.placed(snapshot.jobs[best.job.name], best, snapshot, actions)
            self._follow_promises()
        if victims or snapshot.has_quotas:  # what they leave, or what borrows now, is for more important work at once
            self._wake(snapshot)

    def _makes_way(self, record: JobRecord, snapshot: Snapshot) -> bool:
        """Whether a more important job of the same tenant is asked to stop and will wait again: what it leaves of the
        quota is its own, and nobody should stop for another job meanwhile.
        """
        found = [snapshot.jobs[name] for name in sorted(self._stopping) if name in snapshot.jobs]
        stopping = [one for one in found if one.state is JobState.STOPPING]
        self._stopping = {one.name for one in stopping}
        return any(one.spec.tenant == record.spec.tenant and one.spec.tier < record.spec.tier for one in stopping)

    def _take_in(self, snapshot: Snapshot, actions: Actions) -> None:
        """Sort in what has come and changed, and find the classes whose head may fit now."""
        kinds = {type(event) for event in snapshot.news}
        data = not kinds.isdisjoint(DATA)
        if not self._waiting.follow(snapshot) or self._regions != snapshot.supply_mgpu.keys():
            self._requeue(snapshot, actions)
            self._bind_all(snapshot.jobs.values(), snapshot, actions)
            self.begin(snapshot)
            return
        rights = ev.QuotaSet in kinds
        if data or rights:
            self._take_in_data(snapshot, actions, rights=rights)
        else:
            self._take_in_jobs(snapshot, actions)
        self._wake(snapshot)

    def _take_in_jobs(self, snapshot: Snapshot, actions: Actions) -> None:
        """Bind and queue the jobs that have come since the last turn."""
        for event in snapshot.news:
            if isinstance(event, ARRIVALS) and event.job in snapshot.jobs and snapshot.jobs[event.job].waits:
                self._bind_all((snapshot.jobs[event.job],), snapshot, actions)
                self._join(snapshot.jobs[event.job], snapshot)

    def _take_in_data(self, snapshot: Snapshot, actions: Actions, *, rights: bool) -> None:
        """Take in news of data like ``begin``, for the jobs that may have other regions than before: all others were
        refused. ``rights``: tenants may use other amounts too."""
        changed = {record.name: record for record in self._requeue(snapshot, actions)}
        unbound = (
            [] if self.params.bind == LATE else [one for one in snapshot.jobs.values() if one.waits and not one.bound]
        )
        if self.params.bind != LATE:
            self._bind_all(unbound, snapshot, actions)
        if rights:
            self._take_in_rights(snapshot)
        changed |= {record.name: record for record in unbound}
        datasets = {event.dataset: None for event in snapshot.news if isinstance(event, DATA)}
        changed |= {record.name: record for record in self._waiting.readers(datasets, snapshot)}
        for event in snapshot.news:
            if isinstance(event, ARRIVALS) and event.job in snapshot.jobs and snapshot.jobs[event.job].waits:
                changed[event.job] = snapshot.jobs[event.job]
        for record in sorted(changed.values(), key=lambda record: record.number):
            self._join(record, snapshot)

    def _take_in_rights(self, snapshot: Snapshot) -> None:
        """Take in that tenants may use other amounts, like ``begin``, for classes: any may fit now, and the jobs of one
        have the same rights."""
        self._due, self._kept_out, self._whole = dict(self._waiting.classes), {}, WholeServers()
        self._ranked = RankedHeads()
        self._stopping = {record.name for record in snapshot.jobs.values() if record.state is JobState.STOPPING}
        self._waiting.grow(None)
        if self.params.reserve:
            self._reservations.begin(snapshot)
            waiting: Iterable[JobRecord] = self._waiting.heads(snapshot)
            if self.params.scope == "region":  # the regions of a class are not all that its jobs may have
                waiting = [record for record in snapshot.jobs.values() if record.waits]
            for record in waiting:
                self._unreserved.update(self._reservations.look_at(record, snapshot))

    def _requeue(self, snapshot: Snapshot, actions: Actions) -> list[JobRecord]:
        """Queue all held jobs again."""
        held = snapshot.held
        for record in held:
            actions.requeue(record.name)
        return held

    def _wake(self, snapshot: Snapshot) -> None:
        """Find the classes for which something has become free since they were refused."""
        grown = snapshot.reclaimable.grown(self._seen_growth)
        self._seen_growth = snapshot.reclaimable.count
        groups = self._waiting.grow(grown)
        if self._by_rank(snapshot):
            again: Iterable[WaitingClass] = self._waiting.classes.values()
            if self._ranked is not None:
                again = self._ranked.helped(groups, self._waiting.may_fit_by_right, snapshot)
            self._due.update((one.key, one) for one in again)

    def _offer_due(self, ranked: RankedHeads, snapshot: Snapshot, actions: Actions) -> None:
        """Let the first jobs of the waiting classes that have become due take their turn."""
        due, self._due = self._due, {}
        for waiting in due.values():
            if waiting.place is not None or self._waiting.classes.get(waiting.key) is not waiting:
                continue
            if not waiting.regions or self._waiting.may_fit(waiting) or not self._waiting.head(waiting, snapshot):
                self._offer(waiting, ranked, snapshot, actions)
            else:
                waiting.helper, waiting.right_tier = None, waiting.tier
                self._refuse(waiting, None, ranked, snapshot)

    def _offer(self, waiting: WaitingClass, ranked: RankedHeads, snapshot: Snapshot, actions: Actions) -> None:
        """Let the head of a class take its turn."""
        name = self._waiting.head(waiting, snapshot)
        if name is None or not waiting.regions:
            self._mark_inadmissible(waiting, snapshot, actions)
            return
        record = snapshot.jobs[name]
        rank = self._rank(record, snapshot)
        right = snapshot.right_at(rank[0])
        waiting.helper, waiting.right_tier = (None, waiting.tenant, "")[right], rank[0]
        if right is Right.BORROWED:
            self._waiting.borrow(waiting, record, snapshot)
        if right is not Right.OVER and self._waiting.may_fit_by_right(waiting):
            ranked.push(waiting, rank, name)
        else:
            self._refuse(waiting, waiting.helper, ranked, snapshot)

    def _refuse(self, waiting: WaitingClass, tenant: str | None, ranked: RankedHeads, snapshot: Snapshot) -> None:
        """Let the head of a class wait until it is helped, see ``RankedHeads.refuse``."""
        ranked.refuse(waiting, self._waiting.groups_of(waiting), tenant, snapshot)

    def _mark_inadmissible(self, waiting: WaitingClass, snapshot: Snapshot, actions: Actions) -> None:
        """Hold the jobs of a class that may run nowhere, or has none."""
        for each in self._waiting.members(waiting, snapshot):
            actions.mark_inadmissible(each, NO_DATA, "data")
        self._waiting.forget(waiting)

    def _join(self, record: JobRecord, snapshot: Snapshot) -> None:
        """Queue a job in the class of those that fit in the same places; look whether it may get a reservation."""
        waiting = self._waiting.join(record, snapshot)
        if waiting is not None:
            self._due[waiting.key] = waiting
        if self.params.reserve:
            self._reservations.note(record)
            self._came.append(record)

    def _bind_all(self, records: Iterable[JobRecord], snapshot: Snapshot, actions: Actions) -> None:
        """Bind the jobs that wait and are not bound, unless binding is late."""
        if self.params.bind == LATE:
            return
        for record in [record for record in records if record.waits and not record.bound]:
            if self.params.bind == COPY:
                region = bind_with_copies(record, snapshot, actions, self._loads)
            else:
                home = record.spec.home_region if record.spec.home_region in snapshot.supply_mgpu else None
                at_home = self.params.bind == HOME
                region = home if at_home else self._loads.freest(record, snapshot, share=self.params.bind == SHARE)
                if region is not None:
                    actions.bind(record.name, region)
            if region is not None:
                self._loads.add(record.name, region, record.asked_mgpu)

    # --- reservations ---

    def _serve_holder(self, tier: int | None, snapshot: Snapshot, actions: Actions) -> bool:
        """Place a job that has a reservation, is as important as this, and fits by now; False if there is none."""
        for one in self._reservations.due(tier):
            record = snapshot.jobs[one.job]
            best, second = self._best(record, snapshot.admissible(record), snapshot, actions)
            best = best or self._reservations.kept_for(one, snapshot, actions)
            if best is not None:
                self._commit(best, second, snapshot, actions)
                return True
        return False

    def _reserve(self, snapshot: Snapshot, actions: Actions) -> None:
        """Give reservations to the first jobs that still wait, and promise what is new."""
        while self._serve_holder(None, snapshot, actions):
            pass
        self._look_at_new(None, snapshot)
        for region in [region for region in snapshot.supply_mgpu if region in self._unreserved]:
            self._reserve_in(region, None, snapshot, actions)
        self._unreserved.clear()
        self._reservations.make_room(snapshot, actions)
        self._reservations.publish(snapshot, actions)

    def _look_at_new(self, but: JobRecord | None, snapshot: Snapshot) -> None:
        """Look in which regions the jobs that have come, and still wait, may be the first."""
        came, self._came = self._came, []
        for record in came:
            if record is but:
                self._came.append(record)
            elif record.waits:
                self._unreserved.update(self._reservations.look_at(record, snapshot))

    def _reserve_in(self, region: str, before: JobRecord | None, snapshot: Snapshot, actions: Actions) -> None:
        """Give the reservation of a region to the job that goes first, if it goes before this one."""
        held = self._reservations.of_region
        while True:
            others, never = [one.job for one in held.values()], self._reservations.never.get(region, ())
            below = held[region].rank if region in held else FOREVER  # nobody loses a promise to a promoted job
            if self._by_rank(snapshot):
                name = self._waiting.first_by(region, self._claim(below, snapshot), below, others, never, snapshot)
            else:
                name = self._waiting.oldest(region, others, never, below, snapshot)
            if not name:
                return
            record = snapshot.jobs[name]
            if before is not None and self._order(before, snapshot) <= self._order(record, snapshot):
                return
            if snapshot.importance(record) >= below:
                return
            given = self._reservations.give(record, region, snapshot, actions)
            self._follow_promises()
            if given is not None and given.region == region:
                return

    def _follow_promises(self) -> None:
        """Let waiting jobs try again that were refused for what was promised before."""
        changed, self._reservations.changed = self._reservations.changed, []
        for region in changed:
            one = self._reservations.of_region.get(region)
            if one is None:
                self._unreserved.add(region)
            timed = one is not None and one.servers and one.by_ms != FOREVER  # else nobody ends before
            self._waiting.keep(region, one.by_ms if one is not None and timed else None)
            for key, waiting in self._kept_out.pop(region, {}).items():
                if self._waiting.classes.get(key) is waiting:
                    self._due[key] = waiting

    def _by_rank(self, snapshot: Snapshot) -> bool:
        """Whether the order of jobs changes with time, or is not that of submission."""
        return snapshot.has_quotas or (self.params.backfill == SHORTEST_FIRST and self._reservations.active)

    def _rank(self, record: JobRecord, snapshot: Snapshot) -> Rank:
        """Rank of a job that has no reservation."""
        tier, *others = self._order(record, snapshot)
        if self.params.backfill == SHORTEST_FIRST:
            limit_ms = record.spec.limit_ms
            return tier, FOREVER if limit_ms is None else limit_ms, *others
        return tier, *others

    def _order(self, record: JobRecord, snapshot: Snapshot) -> Rank:
        """Rank by which reservations are given where there is none."""
        share: Any = -snapshot.credit_milli(record.spec.tenant) if snapshot.has_quotas else 0
        if snapshot.has_quotas and self.params.sharing == FAIR:
            share = snapshot.fair_shares(record.spec.tenant, self._weights, self.params.half_life_s * SECOND_MS)
        return queue_tier(record, self._promote_ms, snapshot), share, record.submitted_ms, record.number

    def _claim(self, below: int, snapshot: Snapshot) -> Callable[[JobRecord], Rank]:
        """Rank by which reservations are given; those whose importance is not below that come last."""
        return lambda record: (snapshot.importance(record) >= below, *self._order(record, snapshot))

    def _best(
        self, record: JobRecord, regions: tuple[str, ...], snapshot: Snapshot, actions: Actions
    ) -> tuple[Bid | None, Bid | None]:
        """The best bid for a job that keeps all promises, and the best one of another region where that is recorded."""
        found = [bid for bid in actions.bids(record.name) if bid.region in regions] if self.params.runner_up else []

        def place(avoid: frozenset[str]) -> Bid | None:
            if self.params.runner_up:
                return next((bid for bid in found if avoid.isdisjoint(share.server for share in bid.shares)), None)
            asked = regions if self.params.scope == "region" else None
            return packed_bid(record, asked, avoid, self.params.pack, self._whole, snapshot, actions)

        best = place(frozenset())
        if best is not None and self._reservations.active:
            if self._came:
                self._look_at_new(record, snapshot)
            unreserved = best.region in self._unreserved and best.region not in self._reservations.of_region
            if unreserved and not self._by_rank(snapshot):
                self._reserve_in(best.region, record, snapshot, actions)
            best = self._reservations.admit(record, best, place, snapshot)
        return best, next((bid for bid in found if bid is not best), None)
