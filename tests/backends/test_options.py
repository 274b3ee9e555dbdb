"""Options: those of the solver's own reach it, those that a field governs and those it does not know are refused."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from mast_opt.core.errors import UnsupportedOption
from mast_opt.core.solve_result import Limit, SolveParams, Status
from mast_opt.problems import backends
from mast_opt.problems.mip import Mip
from tests.backends.programs import INF, hard, knapsack, program
from tests.solvers import HERE, here

MIP, MINIMUM = knapsack()
HARMLESS = {
    "highs": (
        ("presolve", "off"),
        ("mip_heuristic_effort", "0.1"),
        ("mip_max_leaves", 10**6),
        ("mip_detect_symmetry", False),
    ),
    "cpsat": (("cp_model_presolve", False), ("linearization_level", "2"), ("search_branching", "FIXED_SEARCH")),
    "scip": (("presolving/maxrounds", "0"), ("limits/nodes", 10**6), ("lp/cleanuprows", False)),
    "cbc": (("preprocess", "off"), ("cuts", False), ("maxNodes", 10**6)),
    "gurobi": (("Presolve", 0), ("NodeLimit", 10**6), ("Heuristics", "0.1")),
    "xpress": (("presolve", "0"), ("maxnode", 10**6)),
    "copt": (("Presolve", 0), ("NodeLimit", str(10**6))),
    "cplex": (("preprocessing.presolve", "0"), ("mip.limits.nodes", 10**6)),
}
UNREADABLE = {
    "highs": ("mip_heuristic_effort", "plenty"),
    "cpsat": ("linearization_level", "plenty"),
    "scip": ("limits/nodes", "plenty"),
    "cbc": ("maxNodes", "plenty"),
    "gurobi": ("NodeLimit", "plenty"),
    "xpress": ("maxnode", "plenty"),
    "copt": ("NodeLimit", "plenty"),
    "cplex": ("mip.limits.nodes", "plenty"),
}
NODE_LIMIT = {
    "highs": ("mip_max_nodes", 1),
    "scip": ("limits/nodes", 1),
    "cbc": ("maxNodes", 1),
    "gurobi": ("NodeLimit", 1),
    "xpress": ("maxnode", 1),
    "copt": ("NodeLimit", 1),
    "cplex": ("mip.limits.nodes", 1),
}


@pytest.mark.parametrize("name", here(backends.BUILT_IN))
def test_its_own_options_reach_it(name: str) -> None:
    backend = backends.get(name)
    result = backend.solve(MIP, SolveParams(options=HARMLESS[name]))
    assert (result.status, result.objective) == (Status.OPTIMAL, MINIMUM)


@pytest.mark.parametrize("name", here(backends.BUILT_IN))
def test_values_that_it_cannot_read_are_named(name: str) -> None:
    backend = backends.get(name)
    with pytest.raises(UnsupportedOption, match=UNREADABLE[name][0]):
        backend.solve(MIP, SolveParams(options=(UNREADABLE[name],)))


@pytest.mark.parametrize("name", here(NODE_LIMIT))
def test_an_option_takes_effect_and_its_limit_is_told(name: str) -> None:
    backend = backends.get(name)
    result = backend.solve(hard(), SolveParams(gap=0.0, time_limit_s=60.0, options=(NODE_LIMIT[name],)))
    assert result.status in (Status.FEASIBLE, Status.NO_SOLUTION)
    assert result.limit in (Limit.ITERATIONS, Limit.OTHER)


@pytest.mark.parametrize("name", HERE)
def test_a_limit_in_nodes_is_kept_or_refused(name: str) -> None:
    backend, params = backends.get(name), SolveParams(gap=0.0, time_limit_s=60.0, node_limit=1)
    if name not in NODE_LIMIT:
        with pytest.raises(UnsupportedOption, match="node_limit is 1"):
            backend.solve(hard(), params)
        return
    result = backend.solve(hard(), params)
    assert result.status in (Status.FEASIBLE, Status.NO_SOLUTION)
    assert result.limit in (Limit.ITERATIONS, Limit.OTHER)
    assert backend.solve(MIP, SolveParams(node_limit=10**6)).objective == MINIMUM
    with pytest.raises(UnsupportedOption, match="governed by node_limit"):
        backend.solve(MIP, SolveParams(node_limit=2, options=(NODE_LIMIT[name],)))


@pytest.mark.parametrize("name", HERE)
def test_what_a_field_governs_is_refused(name: str) -> None:
    backend = backends.get(name)
    governed = importlib.import_module(type(backend).__module__).GOVERNED
    assert {"time_limit_s", "gap"} <= set(governed.values())
    for option, field in governed.items():
        with pytest.raises(UnsupportedOption, match=field):
            backend.solve(MIP, SolveParams(options=((option, 1),)))


def nearly() -> tuple[Mip, np.ndarray]:
    """A program and a start whose integers are right and whose continuous columns are not."""
    rows = [([5, 4, 3, -1, 0], -INF, 6), ([0, 0, 0, 1, -1], -INF, 0), ([1, 1, 1, 0, 0], 3, INF)]
    mip = program([0, 0, 0, 1, 1], rows, upper=[1, 1, 1, 50, 50], integral=[True] * 3 + [False] * 2)
    return mip, np.array([1.0, 1.0, 1.0, 0.0, 0.0])


@pytest.mark.parametrize("name", here(["highs", "cpsat", "cbc", "gurobi", "cplex"]))
def test_a_start_with_wrong_continuous_columns_harms_nobody(name: str) -> None:
    backend = backends.get(name)
    mip, start = nearly()
    result = backend.solve(mip, SolveParams(start=start))
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(12.0)
