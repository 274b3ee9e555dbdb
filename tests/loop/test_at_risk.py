"""What running jobs have at risk: what the fleet hears by events, against a look at all jobs."""

from __future__ import annotations

import numpy as np
import pytest

from mast_opt.core.quota_tree import Quota
from mast_opt.core.quotas import Quotas
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.engine import Engine, Turn
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.job_states import JobState
from mast_opt.live.loop.state import State
from mast_opt.live.policies.mast import Mast
from mast_opt.live.simulation.driver import Happening, simulate
from mast_opt.live.simulation.host import SimulatedHost, Work
from mast_opt.problems.job_placement.live_fleet.fleet import Fleet
from mast_opt.problems.job_placement.live_fleet.types import Server


@pytest.mark.parametrize("quotas", [False, True])
def test_what_is_at_risk_is_what_a_look_at_all_jobs_finds(quotas: bool) -> None:
    rng, regions = np.random.default_rng(5), ("north", "south", "west")
    servers = [Server(f"s{n}", regions[n % 3], f"c{n % 3}", "k", "h100", 8, 0, 0) for n in range(6)]
    rights = Quotas()
    for tenant in ("a", "b") if quotas else ():
        rights.set(tenant, None, Quota(16_000))
    coming, work = list[Happening](), dict[str, Work]()
    for n, at_ms in enumerate(np.sort(rng.integers(0, 3_600_000, 150)).tolist()):
        tier, gpus = int(rng.integers(0, 3)), int(rng.choice([1, 2, 4, 8]))
        spec = JobSpec(
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
        state, at_risk = engine.state, dict[str, float]()
        now_ms = state.now_ms + 90_000
        for one in state.jobs.values():
            if one.state is JobState.RUNNING and one.stoppable_tier is not None:
                began_ms = one.since_ms + one.spec.restart_ms * (one.attempt > 1)
                at_risk[one.name] = max(0, now_ms - began_ms) % (one.spec.checkpoint_ms or 1) * one.mgpu / 3.6e9
        with state.fleet.trial():
            state.fleet.look_at_work([region for region in regions if region in state.inventory.supply_mgpu], now_ms)
            for name, gpu_hours in at_risk.items():
                assert state.fleet.job(name).gpu_hours_at_risk == gpu_hours
        again = Fleet.from_bytes(state.fleet.snapshot_bytes())
        assert [again.job(name) for name in at_risk] == [state.fleet.job(name) for name in at_risk]
        most = max(most, sum(gpu_hours > 0 for gpu_hours in at_risk.values()))

    simulate(engine, SimulatedHost(work, servers=servers), coming, on_turn=look)
    assert stops > 20
    assert most > 5
