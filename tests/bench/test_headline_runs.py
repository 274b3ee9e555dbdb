"""The organisation in time: its trace keeps what it promises, and its variants run under the checker."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.headline_runs import calibrated, run_variant, trace_of
from benchmarks.headline_structure import TIER_LOADS, OrganisationParams, structure
from benchmarks.headline_trace import organisation_trace
from benchmarks.headline_variants import BEFORE, VARIANTS
from mast_opt.core.errors import UsageError
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.policies.mast_params import MastParams
from mast_opt.live.simulation.run import run_trace
from mast_opt.live.simulation.variants import digest_of

SMALL = OrganisationParams(days=3, gpus=150, regions=3, datasets=100, median_hours=6.0)


def test_demand_keeps_to_the_targets() -> None:
    params = replace(SMALL, gpus=1000, days=10, ramp_days=0)
    trace = organisation_trace(params)
    jobs, supply = trace.submissions, sum(server.gpus for server in trace.servers)
    assert abs(supply - params.gpus) < 100
    gpus, end = jobs.gang_mgpu / 1000, jobs.submitted_ms + jobs.duration_ms
    for tier, load in enumerate(TIER_LOADS[:2]):
        mine = jobs.tier == tier
        asked = [
            gpus[mine & (jobs.submitted_ms <= at) & (end > at)].sum() for at in range(0, 9 * 86_400_000, 7_200_000)
        ]
        assert np.mean(asked) / params.gpus == pytest.approx(load, rel=0.15)
    first_time = sum(not name for name in jobs.workload) / len(jobs)
    assert first_time == pytest.approx(0.7, abs=0.05)


def test_worst_region_is_as_skewed_as_asked() -> None:
    params = replace(SMALL, gpus=2000, regions=6, datasets=800, skew=2.0)
    made = structure(params)
    urgent = made.target[:, 0].mean(axis=1)
    first = params.first_time_percent / 100
    worst = []
    for k in range(3):
        of_type = urgent * (first / 3 + (1 - first) * (made.nominal == k).mean(axis=1))
        demand = np.bincount(made.home, weights=of_type, minlength=params.regions)[:-1]
        worst.append((demand / made.supply[:-1, k]).max())
    assert max(worst) == pytest.approx(2.0, rel=0.15)
    assert made.supply[-1].sum() == round(0.002 * params.gpus)
    assert not (made.home == params.regions - 1).any()


def test_data_is_read_after_it_is_there() -> None:
    trace = organisation_trace(replace(SMALL, datasets=400, new_percent=10))
    created = {name: one.created_ms for name, one in trace.surroundings.datasets.items()}
    assert max(created.values()) > 0
    for job, names in trace.submissions.datasets.items():
        assert all(created[name] <= trace.submissions.submitted_ms[job] + 1000 for name in names)


def test_same_seed_same_trace() -> None:
    assert digest_of(organisation_trace(SMALL)) == digest_of(organisation_trace(SMALL))
    assert digest_of(organisation_trace(SMALL)) != digest_of(organisation_trace(replace(SMALL, seed=2)))


def test_failures_shift_nothing_else() -> None:
    plain, failing = organisation_trace(SMALL), organisation_trace(replace(SMALL, failures=100.0, repair_hours=6.0))
    assert not plain.surroundings.happenings
    assert digest_of(replace(failing, surroundings=plain.surroundings)) == digest_of(plain)
    happenings = failing.surroundings.happenings
    downs = [one for one in happenings if one.what == "server_down"]
    assert len(downs) == pytest.approx(0.1 * 3 * len(plain.servers), rel=0.8)
    assert len(happenings) == 2 * len(downs)
    for name in {one.name for one in downs}:
        assert {one.what for one in [one for one in happenings if one.name == name][::2]} == {"server_down"}


def test_quotas_are_a_tree_of_the_supply() -> None:
    trace = organisation_trace(replace(SMALL, quotas=True))
    rows = {name: (quota.nominal, above) for name, _, quota, above in trace.quotas.rows()}
    spaces = set(trace.submissions.tenant)
    assert sum(nominal for nominal, _ in rows.values()) == sum(server.gpus for server in trace.servers) * 1000
    assert spaces <= set(rows)
    for name in spaces:
        team = rows[name][1]
        assert rows[team] == (0, "organisation")
    assert rows["organisation"] == (0, "")


@pytest.mark.parametrize(
    ("name", "value"), [("regions", 1), ("skew", 0.0), ("storage_by", "x"), ("days", 0), ("failures", -1.0)]
)
def test_bad_parameters_are_named(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=name):
        replace(SMALL, **{name: value})


@pytest.mark.parametrize("name", ["before", "after", "early-stale", "hard", "no-preemption", "copy-on-submission"])
def test_logs_of_variants(name: str) -> None:
    variant = VARIANTS[name]
    trace = trace_of(variant, SMALL)
    given = {"slow.data.iterations": "3"} if variant.slow else {}
    run = run_trace(trace, variant.policy, {**given, **variant.params}, slow=variant.slow, until_ms=3 * 86_400_000)
    data = {name: regions for name, regions in trace.replicas.items() if name not in trace.surroundings.datasets}
    assert check_log(run.events(), replicas={name: set(held) for name, held in data.items()}, durations=True) == ()


def test_bound_jobs_run_where_they_are_bound() -> None:
    trace = trace_of(BEFORE, SMALL)
    run = run_trace(trace, BEFORE.policy, dict(BEFORE.params), until_ms=86_400_000)
    homes = dict(zip(trace.submissions.labels, trace.submissions.home_region, strict=True))
    placed = [stored.event for stored in run.events() if type(stored.event).__name__ == "Placed"]
    assert placed
    assert all(event.region == homes[event.job] for event in placed)  # type: ignore[attr-defined]


def test_calibration_hits_the_published_ratio() -> None:
    params = calibrated(replace(SMALL, ramp_days=0), warm_up_days=1.0, tolerance=0.3)
    found = run_variant(BEFORE, params, {"tick_s": "60"}, warm_up_days=1.0)
    assert found["worst_ratio"][0]["mean"] == pytest.approx(2.63, abs=0.5)


def test_limits_change_nothing_else() -> None:
    with_limits, without = (trace_of(VARIANTS[name], SMALL).submissions for name in ("limits-pass", "after"))
    assert (with_limits.limit_ms >= with_limits.duration_ms).all()
    assert (without.limit_ms == -1).all()
    assert with_limits.labels == without.labels
    assert (with_limits.duration_ms == without.duration_ms).all()


def test_data_stays_where_it_appeared() -> None:
    trace = trace_of(VARIANTS["after"], SMALL)
    origin = {name: regions[0] for name, regions in trace.replicas.items()}
    given = {"slow.data.iterations": "2", "slow.data.keep_origin": "true", "tick_s": "600"}
    run = run_trace(trace, "mast", given, slow=("data",), until_ms=3 * 86_400_000)
    copied = [stored.event for stored in run.events() if isinstance(stored.event, ev.CopyAsked)]
    dropped = [stored.event for stored in run.events() if isinstance(stored.event, ev.ReplicaDropped)]
    assert copied
    assert all(origin[event.dataset] != event.region for event in dropped)


def test_shares_that_are_not_optimised_change_no_replica() -> None:
    trace = trace_of(VARIANTS["after"], SMALL)
    steps = []
    for exact in ("true", "false"):
        given = {"slow.data.iterations": "3", "slow.data.exact_shares": exact, "tick_s": "600"}
        run = run_trace(trace, "mast", given, slow=("data",), until_ms=2 * 86_400_000)
        adopted = [stored.event for stored in run.events() if isinstance(stored.event, ev.PlanAdopted)]
        steps.append({(step.does, step.name, step.target) for step in adopted[0].steps})
    assert steps[0]
    assert steps[0] == steps[1]


@pytest.mark.parametrize(("name", "value"), [("bind", "soon"), ("age_s", -1)])
def test_wrong_bindings_are_named(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=name):
        MastParams(**{name: value})
