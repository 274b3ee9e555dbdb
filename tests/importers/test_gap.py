"""Generalised assignment files: what is read, that optima are the same, and what is wrong is named."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from mast_opt.core.errors import SourceError
from mast_opt.planner.importers import importer_named
from mast_opt.planner.importers.gap import Gap, job_placement, penalty, read_gap
from mast_opt.planner.solving import solve
from tests.narrowing import some
from tests.solvers import OPEN

HAND = """\
 3 6
 4 9 3 8 5
 7
 6 2 8 3 9 4   7 7 5 5 2 6
 5 4 6 3 7 2
 4 6 5 4 5 4   3 5 4 6 6 3
 9
 9 8
"""
"""Six items on three agents, broken into lines as the OR-Library does: anywhere."""


def file(tmp_path: Path, text: str = HAND) -> Path:
    path = tmp_path / "hand.txt"
    path.write_text(text)
    return path


def optimum(gap: Gap) -> int | None:
    """By trying every assignment."""
    agents, items = gap.cost.shape
    costs = []
    for choice in product(range(agents), repeat=items):
        used = np.zeros(agents, np.int64)
        np.add.at(used, list(choice), gap.weight[list(choice), range(items)])
        if (used <= gap.capacity).all():
            costs.append(int(gap.cost[list(choice), range(items)].sum()))
    return min(costs, default=None)


def test_every_number_has_its_place(tmp_path: Path) -> None:
    gap = read_gap(file(tmp_path))
    assert gap.cost.tolist() == [[4, 9, 3, 8, 5, 7], [6, 2, 8, 3, 9, 4], [7, 7, 5, 5, 2, 6]]
    assert gap.weight.tolist() == [[5, 4, 6, 3, 7, 2], [4, 6, 5, 4, 5, 4], [3, 5, 4, 6, 6, 3]]
    assert gap.capacity.tolist() == [9, 9, 8]


@pytest.mark.parametrize("solver", OPEN)
@pytest.mark.parametrize("formulation", ["base", "strong"])
def test_exact_solvers_find_the_optimum(solver: str, formulation: str, tmp_path: Path) -> None:
    path = file(tmp_path)
    problem = importer_named("gap").run([path], {}, seed=0)
    solution = solve(problem, solver, formulation=formulation, gap=0.0)
    assert solution.objective == optimum(read_gap(path))
    assert some(solution.verdict).terms["rejected"] == 0
    assert solution.status.value == "OPTIMAL"
    assert problem.name == "hand"


@pytest.mark.parametrize("seed", range(8))
def test_no_plan_gains_by_rejecting_a_job(seed: int) -> None:
    """Tight capacities and wild costs: rejecting one expensive item would make room for cheap moves of the others."""
    rng = np.random.default_rng(seed)
    weight = rng.integers(3, 9, (3, 6))
    gap = Gap(rng.integers(1, 60, (3, 6)), weight, weight.sum(axis=1) * 3 // 7 + 2)
    best = optimum(gap)
    solution = solve(job_placement(gap, "wild"), "highs", gap=0.0)
    if best is None:
        assert some(solution.verdict).terms["rejected"] > 0
    else:
        assert solution.objective == pytest.approx(best)
    assert penalty(gap) > 0


@pytest.mark.parametrize("name", ["exhaustive", "exhaustive+repair"])
def test_our_solvers_that_price_costs_take_it(name: str, tmp_path: Path) -> None:
    path = file(tmp_path)
    solution = solve(job_placement(read_gap(path), "hand"), name, iterations=3 if "repair" in name else None)
    best = optimum(read_gap(path))
    assert best is not None
    assert solution.objective is not None
    assert solution.objective >= best


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "numbers of agents and items"),
        (HAND.replace("6 2 8", "6 -2 8"), "number 10: found '-2'"),
        (HAND.replace("6 2 8", "6 2.5 8"), "number 10: found '2.5'"),
        (HAND.replace("6 2 8", f"6 {'1' * 5000} 8"), "number 10: found '1111"),
        (HAND + " 1", "found '42'; expected 41 numbers"),
        (HAND.replace("9 8\n", "9\n"), "found '40'; expected 41 numbers"),
        (HAND.replace(" 9\n 9 8", " 2\n 2 2"), "room for item 1"),
        ("0 4 1 1 1 1", "0 and 4 as numbers of agents and items"),
    ],
)
def test_faults_are_named(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError) as error:
        read_gap(file(tmp_path, text))
    assert words in str(error.value)


def test_a_file_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        read_gap(tmp_path / "none")
