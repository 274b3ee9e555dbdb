"""Early binding: where a job is sent when it comes."""

from __future__ import annotations

import pytest

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.engine import Engine
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.policy import Policy
from mast_opt.live.loop.state import State
from mast_opt.live.policies.early_binding import EarlyBinding, EarlyBindingParams
from mast_opt.live.policies.mast import Mast
from mast_opt.live.policies.mast_params import MastParams
from mast_opt.problems.job_placement.live_fleet.types import Part, Server

SERVERS = (
    *(Server(f"big-{at}", "big", "big-c", "rack", "a100", 8, 0, 0) for at in range(4)),
    Server("small-1", "small", "small-c", "rack", "h100", 8, 0, 0),
)
"""Most is left in a region whose GPUs not all jobs can use."""
POLICIES: tuple[Policy, ...] = (
    *(Mast(MastParams(bind=bind)) for bind in ("free", "share", "copy")),
    *(EarlyBinding(EarlyBindingParams(rule)) for rule in ("free", "share", "hydra", "random")),
)
ON_H100 = {"h100": 4000}
JOBS = {
    "one type": JobSpec(tier=0, tasks=2, mgpu=4000, gpu_types=ON_H100),
    "a part of one type": JobSpec(
        tier=0, within="region", parts=(Part("any", 1, 1000, 0), Part("h100", 1, 4000, 0, gpu_types=ON_H100))
    ),
}


@pytest.mark.parametrize("policy", POLICIES, ids=lambda one: f"{one.name} {one.params}"[:40])
@pytest.mark.parametrize("kind", JOBS)
def test_a_job_is_sent_where_its_gpu_type_is(policy: Policy, kind: str) -> None:
    engine = Engine(State(SERVERS, tiers=(0,)), policy)
    engine.advance(0, list(engine.state.opening()))
    engine.advance(1000, [ev.Submitted("j", JOBS[kind]), ev.Submitted("any", JobSpec(tier=0, tasks=4, mgpu=8000))])
    assert (engine.state.jobs["j"].region, engine.state.jobs["any"].region) == ("small", "big")


def test_a_region_out_of_service_is_too_small() -> None:
    state = State(SERVERS, tiers=(0,))
    engine = Engine(state, POLICIES[0])
    engine.advance(0, list(state.opening()))
    engine.advance(1000, [ev.ServerDown("small-1")])
    job = JOBS["one type"]
    engine.advance(2000, [ev.Submitted("j", job)])
    assert not state.inventory.could_hold(state.jobs["j"].job, "small")
    assert state.jobs["j"].bound == ""


@pytest.mark.parametrize("policy", POLICIES[:3], ids=lambda one: f"{one.params}"[:40])
def test_regions_without_gpus_are_compared(policy: Policy) -> None:
    servers = [Server(f"s{at}", f"r{at}", f"c{at}", "rack", "none", 0, 8, 0) for at in range(2)]
    engine = Engine(State(servers, tiers=(0,)), policy)
    engine.advance(0, list(engine.state.opening()))
    engine.advance(1000, [ev.Submitted("j", JobSpec(tier=0, mgpu=0, cpu_mcores=1))])
    assert engine.state.jobs["j"].region == "r0"
