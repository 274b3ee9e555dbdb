"""Instances on which versions of HiGHS were wrong."""

from __future__ import annotations

import pytest

import mast_opt
from mast_opt import Status


def test_presolve_of_1_13_calls_13_066_optimal() -> None:
    problem = mast_opt.generate("data-placement", seed=61, datasets=4, workloads=5, regions=2)
    solution = mast_opt.solve(problem, "highs", gap=0.0, threads=1)
    assert (solution.status, solution.objective) == (Status.OPTIMAL, pytest.approx(13.0465056))


@pytest.mark.parametrize(("seed", "minimum"), [(358, 49.6071194), (316, 50.4328606)])
def test_1_16_hands_back_the_start_or_exceeds_rows(seed: int, minimum: float) -> None:
    problem = mast_opt.generate("data-placement", "features", seed=seed, datasets=5, workloads=6, regions=3)
    solution = mast_opt.solve(problem, "highs", gap=0.0, threads=1)
    assert (solution.status, solution.objective) == (Status.OPTIMAL, pytest.approx(minimum))
