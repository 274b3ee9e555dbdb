"""Which running jobs may be stopped, kept by region as events come, against a look at all jobs."""

from __future__ import annotations

import numpy as np
import pytest

from mast_opt.core.quota_tree import Quota
from mast_opt.core.quotas import Quotas
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.engine import Engine, Turn
from mast_opt.live.loop.job_states import JobState
from mast_opt.live.loop.state import State
from mast_opt.live.policies.mast import Mast
from mast_opt.live.simulation.driver import Happening, simulate
from mast_opt.live.simulation.host import SimulatedHost, Work
from mast_opt.problems.job_placement.live_fleet.types import Server


@pytest.mark.parametrize("quotas", [False, True])
def test_stoppable_jobs_are_those_that_a_look_at_all_finds(quotas: bool) -> None:
    rng, regions = np.random.default_rng(5), ("north", "south", "west")
    servers = [Server(f"s{n}", regions[n % 3], f"c{n % 3}", "k", "h100", 8, 0, 0) for n in range(6)]
    rights = Quotas()
    for tenant in ("a", "b") if quotas else ():
        rights.set(tenant, None, Quota(16_000))
    coming, work = list[Happening](), dict[str, Work]()
    for n, at_ms in enumerate(np.sort(rng.integers(0, 3_600_000, 150)).tolist()):
        tier, gpus = int(rng.integers(0, 3)), int(rng.choice([1, 2, 4, 8]))
        spec = ev.JobSpec(
            tier=tier, mgpu=gpus * 1000, preemptible=tier > 0, tenant="ab"[n % 2], checkpoint_ms=60_000 * tier,
            duration_ms=int(rng.integers(60_000, 1_200_000)),
        )  # fmt: skip
        coming.append((at_ms, ev.Submitted(f"j{n}", spec)))
        work[f"j{n}"] = Work(spec.duration_ms or 0, spec.checkpoint_ms, 1000)
    coming.append((3_700_000, ev.ServerDown("s0")))
    engine = Engine(State(servers, tiers=(0, 1, 2), quotas=rights), Mast())
    stops = most = 0

    def look(turn: Turn) -> None:
        nonlocal stops, most
        stops += sum(isinstance(stored.event, ev.StopAsked) for stored in turn.events)
        jobs = engine.state.jobs.values()
        able = {one.name for one in jobs if one.state is JobState.RUNNING and one.stoppable_tier is not None}
        kept = {name for there in engine.state.stoppable.values() for name in there}
        assert kept == able
        for region, there in engine.state.stoppable.items():
            assert all(one.region == region for one in there.values())
        most = max(most, len(able))

    simulate(engine, SimulatedHost(work, servers=servers), coming, on_turn=look)
    assert stops > 20
    assert most > 5
