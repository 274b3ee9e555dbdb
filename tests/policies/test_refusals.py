"""``mast`` with quotas decides as if it asked for each class at each step, though it leaves out those that were refused
and that nothing has helped since, on random traces.

``python -m tests.policies.test_refusals 0 1000`` runs so many of each form.
"""

from __future__ import annotations

import random
import sys
from dataclasses import replace

import pytest

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.engine import Engine, Turn
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.loop.state import State
from mast_opt.live.policies.mast import Mast
from mast_opt.live.policies.mast_params import MastParams
from mast_opt.live.policies.ranked_heads import Rank, RankedHeads
from mast_opt.live.simulation.driver import simulate
from mast_opt.live.simulation.host import SimulatedHost, Work
from mast_opt.problems.job_placement.live_fleet.types import Server
from tests.policies.test_reservations import FORMS, PARAMS, Drawn

MORE = (MastParams(reserve=False), MastParams(sharing="fair"), MastParams(reclaim="never"), MastParams(bind="home"))
TENANTS = "uvwxy"


class Asking(Mast):
    """Asks for every class again at each step, whatever the bounds on groups say."""

    def begin(self, snapshot: Snapshot) -> None:
        super().begin(snapshot)
        self._waiting.may_fit_by_right = lambda waiting: True  # type: ignore[method-assign]

    def _wake(self, snapshot: Snapshot) -> None:
        super()._wake(snapshot)
        if self._by_rank(snapshot):
            self._due.update(self._waiting.classes)

    def _offer_due(self, ranked: RankedHeads, snapshot: Snapshot, actions: Actions) -> None:
        due, self._due = self._due, {}
        for waiting in due.values():
            if waiting.place is None and self._waiting.classes.get(waiting.key) is waiting:
                self._offer(waiting, ranked, snapshot, actions)


class Counting(Mast):
    """Counts the jobs that it ranks."""

    ranked = 0

    def _rank(self, record: JobRecord, snapshot: Snapshot) -> Rank:
        self.ranked += 1
        return super()._rank(record, snapshot)


class CountingAsking(Asking, Counting):
    """Counts the jobs that it ranks when it asks for every class."""


class Quoted(Drawn):
    """Five tenants with quotas, of types too, in two groups that lend and borrow."""

    def spec(self) -> JobSpec:
        spec = super().spec()
        return spec if self.form == "one-tier" else replace(spec, tenant=self.rng.choice(TENANTS))

    def happenings(self) -> list[tuple[int, ev.Event]]:
        found, rng = super().happenings(), random.Random(f"{self.rng.random()}")
        above = {tenant: rng.choice(["f", "g", ""]) for tenant in TENANTS}
        top = rng.choice(["", "top"])
        if top:
            found.append((0, ev.QuotaSet("top", 0)))
        for group in "fg":
            found.append((0, ev.QuotaSet(group, rng.choice([0, 4000]), parent=top)))
        for tenant in TENANTS:
            kind, mgpu = rng.choice(["", "", "h100"]), rng.choice([0, 2000, 4000, 8000])
            borrowing = rng.choice([None, None, 2000])
            found.append((0, ev.QuotaSet(tenant, mgpu, kind, borrowing_mgpu=borrowing, parent=above[tenant])))
        return [one for one in found if not (one[0] and isinstance(one[1], ev.QuotaSet))]


def saved(params: MastParams, form: str, seed: int, parts: bool) -> tuple[int, int]:
    """Jobs that are ranked, and that would be ranked if every class were asked for at each step; decisions are
    equal."""
    mast, asking = Counting(params), CountingAsking(params)
    assert Quoted(form, seed, parts).run(mast) == Quoted(form, seed, parts).run(asking), (params, form, seed, parts)
    return mast.ranked, asking.ranked


@pytest.mark.parametrize("params", PARAMS + MORE)
def test_what_was_refused_is_not_asked_for_in_vain(params: MastParams) -> None:
    found = [saved(params, form, seed, parts) for form in FORMS[1:] for seed in (1, 2) for parts in (False, True)]
    assert sum(some for some, _ in found) < sum(all_ for _, all_ in found)


TYPED = {
    "v": (0, ("v100",), (), 100_000, "z"),
    "x": (0, ("h100",), ("of-b",), 100, "x"),
    "y": (1, ("h100",), ("of-a",), 100_000, "y"),
    "waits": (2, ("h100", "v100"), ("of-a",), 50, "x"),
}
"""Job → time, GPU types, data, run time, tenant. The last one is within its quotas on the type that is full, and
borrows the other, where it may stop y only once x has ended."""


@pytest.mark.parametrize("params", [MastParams(), MastParams(reserve=False)])
def test_a_job_is_helped_by_rights_of_a_type_that_is_not_its_best(params: MastParams) -> None:
    servers = [
        Server(name, name[0], name[0], name, kind, 4, 32, 0)
        for name, kind in (("a-h", "h100"), ("a-v", "v100"), ("b-h", "h100"))
    ]
    state = State(servers, tiers=(0, 1, 2), replicas={"of-a": {"a"}, "of-b": {"b"}})
    coming: list[tuple[int, ev.Event]] = [(0, event) for event in state.opening()]
    coming += [(0, ev.QuotaSet(tenant, mgpu, "h100")) for tenant, mgpu in (("x", 4000), ("y", 0))]
    for name, (at_ms, kinds, data, _, tenant) in TYPED.items():
        types = dict.fromkeys(kinds, 4000)
        spec = JobSpec(tier=1, mgpu=4000, gpu_types=types, tenant=tenant, datasets=data, preemptible=name == "y")
        coming.append((at_ms, ev.Submitted(name, spec)))
    began: dict[str, int] = {}

    def note(turn: Turn) -> None:
        began.update({one.event.job: one.at_ms for one in turn.events if isinstance(one.event, ev.Placed)})

    work = {name: Work(run_ms, 10) for name, (*_, run_ms, _) in TYPED.items()}
    simulate(Engine(state, Mast(params)), SimulatedHost(work, servers=servers), coming, on_turn=note)
    assert began["waits"] == 100


if __name__ == "__main__":
    for number in range(*map(int, sys.argv[1:])):
        for form in FORMS[1:]:
            for params in PARAMS + MORE:
                saved(params, form, number, number % 2 == 1)
        print(number, flush=True)
