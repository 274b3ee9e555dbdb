"""Quotas of a GPU type in the loop: work over one is stopped for others, as work over a quota of all types is."""

from __future__ import annotations

import pytest

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.engine import Engine
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.state import State
from mast_opt.live.policies.mast import Mast
from mast_opt.problems.job_placement.live_fleet.types import Server


@pytest.mark.parametrize("gpu_type", ["", "h100"])
def test_work_over_a_quota_is_stopped_for_less_important_work_within_one(gpu_type: str) -> None:
    state = State([Server("s", "r", "c", "b", "h100", 8, 0, 0)], tiers=(0, 1, 2), placement="best-fit")
    engine = Engine(state, Mast())
    engine.advance(0, [*state.opening(), ev.QuotaSet("A", 4000, gpu_type)])
    engine.advance(1, [ev.Submitted("a", JobSpec(tier=0, mgpu=8000, tenant="A"))])
    engine.advance(2, [ev.Started("a", 1)])
    turn = engine.advance(3, [ev.Submitted("b", JobSpec(tier=1, mgpu=8000, tenant="B"))])
    assert [command.id for command in turn.commands] == ["a/1/stop"]
