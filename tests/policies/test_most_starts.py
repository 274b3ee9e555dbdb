"""Turns that place some jobs and let the next one go on, for the sake of those who wait for the turn."""

from __future__ import annotations

import pytest

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.engine import Engine
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.state import State
from mast_opt.live.policies.mast import Mast
from mast_opt.problems.job_placement.live_fleet.types import Server
from tests.policies.test_reservations import PARAMS, Drawn, counts

SERVERS = [Server(f"s{at}", "r", "c", "b", "h100", 8, 0, 0) for at in range(4)]


@pytest.mark.parametrize("seed", range(12))
def test_promises_are_kept(seed: int) -> None:
    for form in ("one-tier", "rough"):
        counts(form, seed, PARAMS[seed % len(PARAMS)], most_starts=1)


@pytest.mark.parametrize("seed", range(12))
def test_jobs_of_one_tier_start_in_the_same_places(seed: int) -> None:
    whole, some = (Drawn("one-tier", seed).run(Mast(), most_starts) for most_starts in (None, 1))
    starts = [[(one.at_ms, one.event) for one in log if isinstance(one.event, ev.Placed)] for log in (whole, some)]
    assert starts[0] == starts[1]


@pytest.mark.parametrize("quotas", [{}, {"t": 64_000}])
def test_a_turn_places_so_many(quotas: dict[str, int]) -> None:
    state = State(SERVERS, tiers=(0,), quotas=quotas)
    engine = Engine(state, Mast(), most_starts=3)
    engine.advance(0, state.opening())
    turn = engine.advance(1, [ev.Submitted(f"j{at}", JobSpec(tenant="t")) for at in range(7)], decides=False)
    assert (turn.commands, turn.next_wake_ms) == ((), 1)
    turns = [engine.advance(1, []) for _ in range(3)]
    assert [len(turn.commands) for turn in turns] == [3, 3, 1]
    assert [turn.next_wake_ms for turn in turns] == [1, 1, None]
