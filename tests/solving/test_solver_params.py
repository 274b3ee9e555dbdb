"""Parameters at the door of ``solve``: who takes which, and what is recorded of them."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import mast_opt
from mast_opt import RasParams, UsageError
from mast_opt.core.errors import BackendUnavailable
from mast_opt.problems import backends
from mast_opt.problems.search.params import Params

FLEET = mast_opt.generate("server-assignment", seed=1, servers=20, reservations=2)
JOBS = mast_opt.generate("job-placement", seed=1)


@pytest.mark.parametrize(
    ("problem", "solver", "given", "words"),
    [
        (FLEET, "highs", {"price_steps": 3}, "highs is a MIP backend: .* has no parameters; .* these have: ras"),
        (FLEET, "ras", {"price_stps": 3}, "RasParams has no parameter 'price_stps'; did you mean 'price_steps'"),
        (FLEET, "ras", {"sub_mip": {"solver": "hihgs"}}, "is 'hihgs', which is no backend; did you mean 'highs'"),
        (FLEET, "ras", Params(), "params is a Params; ras takes a RasParams"),
        (FLEET, "ras", 3, "params is 3; expected the parameters of a solver, or a mapping"),
        (JOBS, "best-fit", {"price_steps": 3}, "best-fit has no parameters"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_done(
    problem: Any, solver: str, given: Any, words: str
) -> None:
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(UsageError, match=words):
        mast_opt.solve(problem, solver, params=given, cancel=cancelled)


def test_a_missing_solver_of_sub_problems_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(backend: object) -> str:
        raise BackendUnavailable("there is no scip here")

    monkeypatch.setattr(type(backends.get("scip")), "version", version)
    with pytest.raises(BackendUnavailable, match="there is no scip here"):
        mast_opt.solve(FLEET, "ras", params={"sub_mip.solver": "scip"})


def test_no_parameters_are_none_for_any_solver() -> None:
    assert mast_opt.solve(FLEET, params={}).params == {}


def test_the_solution_says_what_was_set_and_which_solver_was_inside() -> None:
    stated = RasParams(price_steps=7)
    found = mast_opt.solve(FLEET, "ras", params=stated, iterations=1)
    assert found.params == {"price_steps": 7}
    assert found.versions["highs"]
    again = mast_opt.solve(FLEET, "ras", params=found.params, iterations=1)
    assert again.params == found.params
    assert again.objective == found.objective
