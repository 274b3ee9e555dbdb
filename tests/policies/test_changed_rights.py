"""``mast`` decides after a change of quotas, or of data under quotas, as if it had begun again, on random traces."""

from __future__ import annotations

import pytest

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.policies.mast import DATA, Mast
from mast_opt.live.policies.mast_params import MastParams
from tests.policies.test_reservations import FORMS, PARAMS, Drawn

MORE = (MastParams(scope="region"), MastParams(reserve=False), MastParams(bind="home"), MastParams(sharing="fair"))


class Beginning(Mast):
    """Begins again at each change of rights."""

    changes = 0

    def _take_in(self, snapshot: Snapshot, actions: Actions) -> None:
        kinds = {type(event) for event in snapshot.news}
        if ev.QuotaSet not in kinds and (not snapshot.has_quotas or kinds.isdisjoint(DATA)):
            super()._take_in(snapshot, actions)
            return
        self.changes += 1
        self._waiting.follow(snapshot)
        self._requeue(snapshot, actions)
        self._bind_all(snapshot.jobs.values(), snapshot, actions)
        self.begin(snapshot)


class Changing(Drawn):
    """Quotas that come, change and go, and datasets that lose a replica."""

    def happenings(self) -> list[tuple[int, ev.Event]]:
        found, rng = super().happenings(), self.rng
        for _ in range(6):
            mgpu = rng.choice([None, 0, 1000, 2000, 8000])
            found.append((rng.randint(50, 200), ev.QuotaSet(rng.choice("xy"), mgpu, rng.choice(["", "", "h100"]))))
        found += [(150, ev.QuotaSet(tenant, None, kind)) for tenant in "xy" for kind in ("", "h100")]
        for _ in range(3 if self.form == "rough" else 0):
            region = rng.choice(sorted(self.replicas["d0"]))
            found.append((rng.randint(0, 200), ev.DatasetCreated(rng.choice(["d0", "d1"]), 4, (region,))))
        return found


@pytest.mark.parametrize("params", PARAMS + MORE)
def test_changed_rights_are_taken_in_without_a_new_beginning(params: MastParams) -> None:
    changes = 0
    for form in FORMS[1:]:
        beginning = Beginning(params)
        assert Changing(form, 3).run(Mast(params)) == Changing(form, 3).run(beginning)
        changes += beginning.changes
    assert changes > 10
