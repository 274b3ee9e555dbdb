"""Encoding and decoding are inverse, and the rows of the formulation judge a plan as the verifier does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from mast_opt.problems.data_placement import DataPlacement, Plan
from mast_opt.problems.data_placement.formulation.codec import apportion
from mast_opt.problems.data_placement.formulation.formulation import base, exact_shares
from mast_opt.problems.data_placement.verification.verifier import verify
from tests.data_placement.strategies import plans, problems
from tests.data_placement.support import RELATIVE, broken_rows, proven, same_plan
from tests.examples import examples

DEFINING = ("tally", "gpu", "worst", "under", "stays")
"""Rows that define what follows from the decisions; an encoded plan keeps them always."""


@examples(200)
@given(data=st.data(), problem=problems())
def test_the_verifier_names_the_rows_that_a_plan_breaks(data: st.DataObject, problem: DataPlacement) -> None:
    plan: Plan = data.draw(plans(problem))
    formulation = base(problem)
    x = formulation.encode(plan)
    broken = broken_rows(formulation.mip, x)
    unserved = {f"served[{name.split('[')[1]}" for name in broken if name.startswith("unserved")}
    expected = {name for name in broken if not follows_from_served(name, problem, plan)}
    expected = named_by_rule(expected, problem, plan)
    expected |= unserved | fractional_runs(problem, plan)
    verdict = verify(problem, plan)
    event(f"violations: {min(len(verdict.violations), 3)}")
    assert {violation.name for violation in verdict.violations} == expected
    assert not any(name.startswith(DEFINING) for name in broken)
    if not any(name.startswith(("served", "local")) for name in expected):
        assert formulation.mip.objective(x) == pytest.approx(verdict.objective, rel=RELATIVE, abs=1e-9)
        terms = {name: term.value(x) for name, term in formulation.mip.terms.items()}
        assert terms == pytest.approx(dict(verdict.terms), rel=RELATIVE, abs=1e-9)


def follows_from_served(name: str, p: DataPlacement, plan: Plan) -> bool:
    """Rows and bounds that break only because more than all of a workload is served; the verifier names that alone."""
    if name.startswith("local["):
        _, dataset, region = name[len("local[") : -1].split(",")
        return bool(plan.place[p.datasets.labels.index(dataset), p.regions.labels.index(region)])
    return name.startswith(("unserved", "remote["))


def named_by_rule(broken: set[str], p: DataPlacement, plan: Plan) -> set[str]:
    """``place`` above its bound is named after each rule that sets the bound: ``place`` itself, ``residency``."""
    homes = p.datasets.residency.any(axis=1, keepdims=True)
    away = np.asarray(plan.place & homes & ~p.datasets.residency, np.bool_)
    for i, r in np.argwhere(away):
        index = f"[{p.datasets.labels[i]},{p.regions.labels[r]}]"
        assert f"place{index}" in broken
        broken = broken - (set() if p.datasets.forbidden[i, r] else {f"place{index}"}) | {f"residency{index}"}
    return broken


def fractional_runs(p: DataPlacement, plan: Plan) -> set[str]:
    kinds = (*p.gpu_types, "none")
    rows = zip(plan.run_workload.tolist(), plan.run_region.tolist(), plan.run_type.tolist(), plan.run_share.tolist())
    return {
        f"run[{p.workloads.labels[w]},{p.regions.labels[r]},{kinds[k]}]"
        for w, r, k, share in rows
        if share < 1000 and not p.workloads.splittable[w]
    }


@examples(100)
@given(problem=problems(roomy=True))
def test_decoding_what_was_encoded_gives_the_same_plan(problem: DataPlacement) -> None:
    for formulate in (base, exact_shares):
        formulation = formulate(problem)
        result = proven(formulation.mip)
        if result.x is None:
            return
        plan = formulation.decode(result.x)
        assert same_plan(formulation.decode(formulation.encode(plan)), plan)
    x = formulation.encode(plan)
    assert broken_rows(formulation.mip, x) == set()
    assert formulation.mip.objective(x) == pytest.approx(result.objective, rel=RELATIVE, abs=1e-9)


@given(data=st.data(), total=st.lists(st.integers(0, 1000), min_size=1, max_size=4))
def test_apportion_adds_up_and_stays_within_one_of_the_quota(data: st.DataObject, total: list[int]) -> None:
    group = np.array(data.draw(st.lists(st.integers(0, len(total) - 1), max_size=12)), np.int64)
    weights = np.array(data.draw(st.lists(st.floats(-1e-9, 1), min_size=len(group), max_size=len(group))))
    shares = apportion(weights, group, np.array(total))
    positive = np.maximum(weights, 0)
    for g, whole in enumerate(total):
        within = group == g
        sums = positive[within].sum()
        assert shares[within].sum() == (whole if sums > 0 else 0)
        if sums > 0:
            assert np.all(np.abs(shares[within] - positive[within] / sums * whole) < 1 + 1e-6)
