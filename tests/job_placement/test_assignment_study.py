"""The study of generalised assignment: bounds below optima, and a table of what there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import assignment_study as study
from mast_opt.planner.importers.gap import job_placement
from tests.job_placement.exhaustive.test_penalised_assignment import least_cost, tight


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_of_the_knapsacks_is_below_the_optimum_and_close(seed: int) -> None:
    gap = tight(3, 7, seed, share=1.2)
    least = least_cost(gap)
    assert 0.9 * least <= study.knapsack_bound(gap, least) <= least + 1e-6


def test_a_row_of_the_search_and_one_of_the_exact_solver_make_a_line(tmp_path: Path) -> None:
    gap = tight(2, 5, 0, share=1.2)
    rows = study.Study(tmp_path / "rows.jsonl")
    rows.add(study.run("tiny", "one", job_placement(gap, "one")))
    rows.add(study.prove("one", gap, rows.rows["one", study.OURS]))
    read = study.Study(tmp_path / "rows.jsonl")
    assert read.rows == rows.rows
    assert read.best({}) == {"one": (least_cost(gap), least_cost(gap))}
    cells = read.table({}).splitlines()[2].split(" | ")
    assert cells[:9] == ["| tiny", "1", "1", "0.00%", "0.00%", "1", "1", "0.00%", "0"]
