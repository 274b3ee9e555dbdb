"""Solutions that are handed to a backend while it runs."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

import mast_opt
from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import UnsupportedOption
from mast_opt.core.solve_result import Event, SolveParams
from mast_opt.problems import backends
from mast_opt.problems.data_placement.formulation.formulation import base


def test_highs_goes_on_from_a_better_solution_and_ignores_a_wrong_one() -> None:
    problem = mast_opt.generate("data-placement", seed=2, datasets=20, workloads=30, regions=3)
    levels = dict.fromkeys(problem.tiers, 0.0)  # peaks from 0 take HiGHS longer
    problem = problem.with_columns({"objective": replace(problem.objective, peak_levels=levels)})
    known = mast_opt.solve(problem, "tetris", iterations=30, threads=1)
    assert known.plan is not None
    formulation = base(problem)
    mip, x = formulation.mip, formulation.encode(known.plan)
    value = mip.objective(x)
    offers: list[FloatArray] = [np.zeros_like(x), x]
    cancel = threading.Event()

    def on_event(event: Event) -> None:
        if event.incumbent is not None and event.incumbent <= value * (1 + 1e-9):
            cancel.set()

    def incumbents() -> FloatArray | None:
        return offers.pop(0) if offers else None

    given = backends.get("highs").solve(
        mip, SolveParams(threads=1, node_limit=100, incumbents=incumbents, on_event=on_event, cancel=cancel)
    )
    assert not offers
    assert given.objective == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("name", ["cpsat", "scip", "cbc"])
def test_a_backend_that_takes_none_says_so(name: str) -> None:
    mip = base(mast_opt.generate("data-placement", seed=1, datasets=4, workloads=4, regions=2)).mip
    with pytest.raises(UnsupportedOption, match="takes no solutions while it runs"):
        backends.get(name).solve(mip, SolveParams(incumbents=lambda: None))
