"""A heuristic prices every weighted term, or ``solve`` refuses it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import UnsupportedOption
from mast_opt.problems.registry import kind_named, kind_names
from tests.data_placement.workshop import PROBLEM

EVERY = [(name, solver) for name in kind_names() for solver in kind_named(name).solvers.heuristics]


def small(name: str, family: str | None = None) -> Any:
    kind = kind_named(name)
    chosen = kind.generate.families[family or next(iter(kind.generate.families))]
    return kind, chosen.generate(np.random.default_rng(1), **{size: min(n, 6) for size, n in chosen.sizes.items()})


@pytest.mark.parametrize(("name", "solver"), EVERY)
def test_a_term_that_a_heuristic_does_not_price_is_refused(
    name: str, solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, problem = small(name)
    term = max(problem.objective.weights, key=lambda one: float(problem.objective.weights[one]))
    ours = kind.solvers.heuristics[solver]
    lacking = replace(ours, pricing=replace(ours.pricing, terms=ours.pricing.terms - {term}))
    monkeypatch.setitem(kind.solvers.heuristics, solver, lacking)
    with pytest.raises(UnsupportedOption, match=f"{solver} does not price {term}".replace("+", r"\+")):
        mast_opt.solve(problem, solver=solver)
    first = replace(problem, objective=replace(problem.objective, order=(term,)))
    with pytest.raises(UnsupportedOption, match="leave it out of the order"):
        mast_opt.solve(first, solver=solver)


@pytest.mark.parametrize(("name", "solver"), EVERY)
def test_every_heuristic_prices_the_terms_that_count_by_default(name: str, solver: str) -> None:
    kind = kind_named(name)
    priced = kind.solvers.heuristics[solver].pricing.terms
    assert {term for term, stated in kind.terms.items() if stated.weight} <= priced <= set(kind.terms)


def test_egress_beyond_what_a_mip_solver_can_settle_is_refused() -> None:
    weights = dict(PROBLEM.objective.weights) | {"egress": 1e-3}
    problem = replace(PROBLEM, objective=replace(PROBLEM.objective, weights=weights))
    assert mast_opt.solve(problem, solver="tetris", iterations=3, threads=1).verdict is not None
    for limit, words in (
        ("neighbourhoods.link_cells", "4 reads and 4 links"),
        ("completion.read_cells", "4 reads and 3 regions"),
    ):
        with pytest.raises(UnsupportedOption, match=f"tetris does not price egress.*{words}.*weight to 0"):
            mast_opt.solve(problem, solver="tetris", params={limit: 11})
        free = mast_opt.solve(PROBLEM, solver="tetris", iterations=3, threads=1, params={limit: 11})
        assert free.verdict is not None


def test_rules_that_do_not_look_at_costs_or_remote_reads_are_refused_where_these_differ() -> None:
    _, problem = small("job-placement", "features")
    problem = replace(problem, remote_reads=False)
    assert problem.costs.cost_micro.any()
    with pytest.raises(
        UnsupportedOption, match=r"federated does not price cost.*Choose exhaustive, exhaustive\+repair"
    ):
        mast_opt.solve(problem, solver="federated")
    assert mast_opt.solve(problem, solver="exhaustive").verdict is not None
    free = replace(
        problem, objective=replace(problem.objective, weights=dict(problem.objective.weights) | {"cost": 0.0})
    )
    assert mast_opt.solve(free, solver="federated").verdict is not None
