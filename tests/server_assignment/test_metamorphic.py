"""What must hold of proven optima when an instance changes: names, units, more servers, more demand, less to keep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_opt.server_assignment import ServerAssignment
from mast_opt.server_assignment.formulation.formulation import base
from mast_opt.server_assignment.problem import EMBEDDED, NONE, SHARED
from tests.server_assignment.strategies import problems
from tests.server_assignment.support import RELATIVE, examples, proven

Change = Callable[[ServerAssignment], ServerAssignment]


def optimum(problem: ServerAssignment) -> float:
    objective = proven(base(problem).mip).objective
    assert objective is not None
    return objective


def at_most(one: float, other: float) -> bool:
    return one <= other * (1 + RELATIVE) + 1e-9


@examples(40)
@given(data=st.data(), problem=problems())
def test_the_order_of_servers_and_reservations_means_nothing(data: st.DataObject, problem: ServerAssignment) -> None:
    p = problem
    servers = np.array(data.draw(st.permutations(range(len(p.servers)))))
    claims = np.array(data.draw(st.permutations(range(len(p.reservations)))))
    back = np.append(np.argsort(claims), len(claims))
    shuffled = replace(
        p,
        servers=tuple(p.servers[s] for s in servers.tolist()),
        server_type=p.server_type[servers],
        server_rack=p.server_rack[servers],
        owner=back[p.owner[servers]],
        in_use=p.in_use[servers],
        reservations=tuple(p.reservations[q] for q in claims.tolist()),
        asked_mrru=p.asked_mrru[claims],
        buffer=p.buffer[claims],
        spread_limited=p.spread_limited[claims],
        spread_limit_milli=p.spread_limit_milli[claims],
        value_mrru=p.value_mrru[claims],
        affinity_reservation=back[p.affinity_reservation],
    )
    assert optimum(shuffled) == pytest.approx(optimum(p), rel=RELATIVE, abs=1e-9)


@examples(40)
@given(problem=problems())
def test_the_unit_of_capacity_means_nothing(problem: ServerAssignment) -> None:
    """Seven RRU where one was; limits are rounded, so they are whole thousandths of it here."""
    asked = problem.asked_mrru - problem.asked_mrru % 1000
    one = replace(problem, asked_mrru=asked)
    seven = replace(one, asked_mrru=7 * asked, value_mrru=7 * problem.value_mrru)
    assert optimum(seven) == pytest.approx(optimum(one), rel=RELATIVE, abs=1e-9)


def another(problem: ServerAssignment, like: int = 0) -> ServerAssignment:
    """One more server of a type and in a rack that there are, which nobody has."""
    p = problem
    return replace(
        p,
        servers=(*p.servers, "another"),
        server_type=np.append(p.server_type, p.server_type[like]),
        server_rack=np.append(p.server_rack, p.server_rack[like]),
        owner=np.append(p.owner, len(p.reservations)),
        in_use=np.append(p.in_use, False),
    )


@examples(25)
@given(problem=problems())
def test_another_server_never_hurts(problem: ServerAssignment) -> None:
    """Terms that count servers are shares of all of them: they are weighted so that one server costs as before."""
    count = len(problem.servers)
    weights = dict(problem.objective.weights)
    for name in ("moves_in_use", "moves_idle", "use"):
        weights[name] *= (count + 1) / count
    more = replace(another(problem), objective=replace(problem.objective, weights=weights))
    assert at_most(optimum(more), optimum(problem))


LIGHTER: dict[str, Change] = {
    "a buffer less": lambda p: replace(p, buffer=np.where(p.buffer == EMBEDDED, NONE, p.buffer)),
    "nobody backed": lambda p: replace(p, buffer=np.where(p.buffer == SHARED, NONE, p.buffer)),
    "no limits": lambda p: replace(p, spread_limited=p.spread_limited & False),
    "wider tolerance": lambda p: replace(p, affinity_tolerance_milli=np.full_like(p.affinity_tolerance_milli, 1000)),
    "idle today": lambda p: replace(p, in_use=p.in_use & False),
}


@pytest.mark.parametrize("change", LIGHTER.values(), ids=LIGHTER)
@examples(20)
@given(problem=problems(default_weights=True))
def test_what_asks_less_never_costs_more(change: Change, problem: ServerAssignment) -> None:
    """Of everything but what may not be worse than today, which depends on how today is judged."""
    unowned = replace(problem, owner=np.full(len(problem.servers), len(problem.reservations)))
    start = problem if change is LIGHTER["idle today"] else unowned
    assert at_most(optimum(change(start)), optimum(start))


@examples(30)
@given(data=st.data(), problem=problems(default_weights=True))
def test_more_demand_never_helps(data: st.DataObject, problem: ServerAssignment) -> None:
    """Denominators frozen: what one reservation asks more, the weights make up for. No limits: they grow with it."""
    p = replace(problem, spread_limited=problem.spread_limited & False)
    p = replace(p, owner=np.full(len(p.servers), len(p.reservations)))
    asked = p.asked_mrru.copy()
    asked[data.draw(st.integers(0, len(asked) - 1))] += 700
    weights = dict(p.objective.weights)
    if p.asked_mrru.any():
        for name in ("shortfall", "spread", "buffer", "affinity", "repair"):
            weights[name] *= asked.sum() / p.asked_mrru.sum()
    more = replace(p, asked_mrru=asked, objective=replace(p.objective, weights=weights))
    assert at_most(optimum(p), optimum(more))
