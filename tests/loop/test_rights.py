"""Quotas by GPU type in the loop: what the fleet and the loop say of a running job is the same."""

from __future__ import annotations

import pytest

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.engine import Engine
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.state import State
from mast_opt.live.policies.mast import Mast
from mast_opt.problems.job_placement.live_fleet.types import Server


@pytest.mark.parametrize("gpu_type", ["", "h100"])
def test_a_quota_of_a_type_is_one(gpu_type: str) -> None:
    state = State([Server("s", "r", "c", "b", "h100", 8, 0, 0)], tiers=(0, 1, 2), placement="best-fit")
    engine = Engine(state, Mast())
    engine.advance(0, [*state.opening(), ev.QuotaSet("A", 4000, gpu_type)])
    engine.advance(1, [ev.Submitted("a", JobSpec(tier=0, mgpu=8000, tenant="A"))])
    engine.advance(2, [ev.Started("a", 1)])
    assert state.jobs["a"].over_quota
    turn = engine.advance(3, [ev.Submitted("b", JobSpec(tier=1, mgpu=8000, tenant="B"))])
    assert [command.id for command in turn.commands] == ["a/1/stop"]


def test_a_job_that_is_within_its_quota_again_is_not_stopped() -> None:
    state = State([Server("s", "r", "c", "b", "h100", 8, 0, 0)], tiers=(0, 1, 2), quotas={"t": 4000})
    engine = Engine(state, Mast())
    engine.advance(0, state.opening())
    for number, name in enumerate(("a", "b")):
        engine.advance(2 * number + 1, [ev.Submitted(name, JobSpec(tier=0, mgpu=4000, tenant="t"))])
        engine.advance(2 * number + 2, [ev.Started(name, 1)])
    assert (state.jobs["a"].over_quota, state.jobs["b"].over_quota) == (False, True)
    engine.advance(5, [ev.Finished("a", 1)])
    assert not state.jobs["b"].over_quota
    turn = engine.advance(6, [ev.Submitted("low", JobSpec(tier=2, mgpu=8000))])
    assert turn.commands == ()
    turn = engine.advance(7, [ev.QuotaSet("t", 1000)])
    assert [command.id for command in turn.commands] == ["b/1/stop"]
