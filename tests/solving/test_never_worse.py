"""``auto`` is never worse than its members: generated instances of every kind, with other weights and with limits."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import UnsupportedOption
from mast_opt.problems.registry import kind_of
from tests.narrowing import some

SIZES: dict[tuple[str, str], dict[str, int]] = {
    ("data-placement", "standard"): {"datasets": 5, "workloads": 6, "regions": 3},
    ("data-placement", "features"): {"datasets": 5, "workloads": 6, "regions": 3},
    ("data-placement", "links"): {"datasets": 4, "workloads": 5, "regions": 3},
    ("job-placement", "standard"): {"regions": 2, "clusters": 1, "servers": 3, "jobs": 4},
    ("job-placement", "features"): {"regions": 2, "clusters": 1, "servers": 2, "jobs": 4},
    ("server-assignment", "standard"): {"servers": 12, "reservations": 3, "datacenters": 2},
    ("server-assignment", "features"): {"servers": 12, "reservations": 3, "datacenters": 2},
    ("task-reassignment", "challenge"): {"processes": 8, "machines": 4, "resources": 2},
}
GAP = 1e-4
LIMITS = ("overload_gpus", "copied_tb", "moved_work", "new_replicas", "storage")


def asked(problem: Any, rng: np.random.Generator) -> dict[str, Any]:
    """Weights, and limits on what the best plan without limits has, some of which no plan keeps."""
    weights = {
        term: float(weight * rng.choice([0.0, 0.1, 1.0, 1.0, 1.0, 50.0]))
        for term, weight in problem.objective.weights.items()
    }
    if "moves_idle" in weights:  # idle servers always move first
        weights["moves_in_use"] = max(weights["moves_in_use"], weights["moves_idle"])
    if kind_of(problem).name != "data-placement":
        return {"weights": weights}
    free = some(mast_opt.solve(problem, "highs", threads=1, weights=weights).verdict)
    known = {**free.metrics, **free.terms}
    names = [name for name in LIMITS if name in known and rng.random() < 0.4]
    limits = {name: round(float(known[name] * rng.choice([0.0, 0.5, 0.9, 1.1])), 3) for name in names}
    return {"weights": weights, "limits": limits}


def check(kind: str, family: str, seed: int) -> str:
    """Solve with ``auto`` and with each member alone; the words say how ``auto`` ended."""
    rng = np.random.default_rng(seed)
    problem = mast_opt.generate(kind, family, seed=seed, **SIZES[kind, family])
    wanted = asked(problem, rng)
    found = mast_opt.solve(problem, threads=2, gap=GAP, params={"head_start_s": 0.0}, time_limit_s=60, **wanted)
    exact = mast_opt.solve(problem, "highs", threads=1, gap=GAP, time_limit_s=60, **wanted)
    members = [exact]
    heuristic = str(found.strategy.get("heuristic") or "")
    if heuristic:
        with contextlib.suppress(UnsupportedOption):
            members.append(mast_opt.solve(problem, heuristic, threads=1, iterations=20, **wanted))
    assert found.status.value == exact.status.value, (found, exact)
    for one in members:
        if one.objective is not None:
            assert some(found.objective) <= one.objective + GAP * abs(some(found.objective)) + 1e-9, (found, one)
    if found.plan is not None:
        assert mast_opt.verify(found.overrides.applied_to(problem), found.plan).ok
    return found.status.value


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("kind", "family"), SIZES)
def test_auto_is_never_worse_than_its_members(kind: str, family: str, seed: int) -> None:
    check(kind, family, seed)
