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
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.jobs import JobRecord
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.policies.mast import Mast
from mast_opt.live.policies.mast_params import MastParams
from mast_opt.live.policies.ranked_heads import Rank, RankedHeads
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


if __name__ == "__main__":
    for number in range(*map(int, sys.argv[1:])):
        for form in FORMS[1:]:
            for params in PARAMS + MORE:
                saved(params, form, number, number % 2 == 1)
        print(number, flush=True)
