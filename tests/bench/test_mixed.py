"""Every policy of the loop runs the trace ``mixed`` under the independent checker."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.mixed_trace import mixed_tables
from mast_opt.core.errors import UsageError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.history import history
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.loop.metrics import metrics
from mast_opt.live.loop.place_metrics import place_metrics
from mast_opt.live.loop.speeds import Speeds
from mast_opt.live.policies.share_rules import PACKING
from mast_opt.live.simulation.run import ENGINE_POLICIES, SimulatedRun, run_trace
from mast_opt.live.simulation.traces.trace import JobTrace, read_trace, trace_from_tables

GAVEL = Path(__file__).parents[2] / "instances" / "traces" / "gavel-minimize-makespan"
JOBS = 24
PACKED_JOBS = 36
"""Enough that every rule shares GPUs."""
GIVEN = {"federated": {"rule": "share"}, "strategy-proof": {"reset_s": "40000"}}
"""Policy → parameters; ``strategy-proof`` solves a program for each job."""


def mixed(jobs: int = JOBS, *, gangs: bool = True, load: float = 6.0) -> JobTrace:
    found = mixed_tables(read_trace(GAVEL).speeds, jobs=jobs, regions=2, gangs=gangs, load=load)
    return trace_from_tables(found.name, found.provenance, found.tables)


def checked(trace: JobTrace, policy: str, given: Mapping[str, str]) -> SimulatedRun:
    """A run whose log is in order."""
    run = run_trace(trace, policy, given)
    held = {name: set(regions) for name, regions in trace.replicas.items()}
    alone, packed = trace.speeds.alone, trace.speeds.packed
    assert check_log(run.events(), replicas=held, all_end=True, durations=True, speeds=alone, packed=packed) == ()
    return run


@pytest.mark.parametrize("policy", ENGINE_POLICIES)
def test_every_policy(policy: str) -> None:
    trace = mixed(gangs=policy != "allox")
    run = checked(trace, policy, GIVEN.get(policy, {}))
    found = metrics(run.rows)
    assert found.finished == found.jobs == JOBS


@pytest.mark.parametrize("objective", ["max-min", "finish-time", "makespan", "fifo"])
def test_every_objective_of_gavel(objective: str) -> None:
    checked(mixed(), "gavel", {"objective": objective})


@pytest.mark.parametrize(
    ("policy", "given"),
    [
        *(("gavel", {"objective": objective}) for objective in PACKING),
        *((name, {}) for name in ("throughput", "hierarchical", "gandiva")),
    ],
)
def test_packing(policy: str, given: dict[str, str]) -> None:
    """GPUs that are shared count once: no more of them are held than there are."""
    run = checked(mixed(PACKED_JOBS, load=12.0), policy, {**given, "packing": "true"})
    shared = [stored.event for stored in run.events() if isinstance(stored.event, ev.Shared)]
    assert shared
    found, past = metrics(run.rows), history(run.events())
    assert found.finished == PACKED_JOBS
    assert found.allocation is not None
    assert found.allocation <= 1
    for region, held in past.held_mgpu.items():
        assert held.amount.max() <= past.supply_mgpu[region].amount.max()
        assert held.amount[-1] == 0
    place_metrics(run.events())


def test_same_seed_same_trace() -> None:
    one, other = mixed(), mixed()
    assert one.submissions.duration_ms.tolist() == other.submissions.duration_ms.tolist()
    assert one.replicas == other.replicas


def test_without_gangs_every_job_has_one_gpu() -> None:
    assert set(mixed(50, gangs=False).submissions.gang_mgpu.tolist()) == {1000}


def test_speeds_of_two_types_are_refused() -> None:
    with pytest.raises(UsageError, match="a, b"):
        mixed_tables(Speeds({("m", "a", 1): 1, ("m", "b", 1): 2}))


@pytest.mark.parametrize("policy", ["themis", "tiresias", "sia", "singularity", "pai"])
def test_a_wrong_parameter_is_named(policy: str) -> None:
    wrong = {
        "themis": ("fairness", "1"), "tiresias": ("first_gpu_s", "0"), "sia": ("factor", "0"),
        "singularity": ("premium", "2"), "pai": ("high_gpus", "0"),
    }[policy]  # fmt: skip
    with pytest.raises(UsageError, match=wrong[0]):
        run_trace(mixed(5), policy, dict([wrong]))


def test_reserving_and_packing_places_all_seven() -> None:
    """PAI's case: six jobs of half a GPU and one of 8, on a server of 8 and a server of 4."""
    from mast_opt.problems.job_placement.live_fleet.types import Server
    from tests.simulation.test_order_only import trace_of

    rows = [{"mgpu": 500, "duration_ms": 1000} for _ in range(6)] + [{"mgpu": 8000, "duration_ms": 1000}]
    servers = (Server("big", "r", "c", "k", "v100", 8, 0, 0), Server("small", "r", "c", "k", "t4", 4, 0, 0))
    trace = trace_of(*rows, servers=servers)
    run = run_trace(trace, "pai")
    placed = [(stored.at_ms, stored.event) for stored in run.events() if isinstance(stored.event, ev.Placed)]
    assert sorted(event.job for _, event in placed) == [f"j{at}" for at in range(7)]
    assert [(at_ms, event.shares[0].server) for at_ms, event in placed if event.job == "j6"] == [(6, "big")]
    assert {share.server for _, event in placed if event.job != "j6" for share in event.shares} == {"small"}
