"""What must hold of proven optima when an instance changes: names, units, more servers, more demand, less to keep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_opt.problems.server_assignment import ServerAssignment
from mast_opt.problems.server_assignment.formulation.formulation import base
from mast_opt.problems.server_assignment.problem import EMBEDDED, NONE, SHARED
from tests.examples import examples
from tests.server_assignment.strategies import problems
from tests.server_assignment.support import RELATIVE, proven

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
        servers=replace(
            p.servers,
            labels=tuple(p.servers.labels[s] for s in servers.tolist()),
            type=p.servers.type[servers],
            rack=p.servers.rack[servers],
            owner=back[p.servers.owner[servers]],
            in_use=p.servers.in_use[servers],
        ),
        reservations=replace(
            p.reservations,
            labels=tuple(p.reservations.labels[q] for q in claims.tolist()),
            asked_mrru=p.reservations.asked_mrru[claims],
            buffer=p.reservations.buffer[claims],
            spread_limited=p.reservations.spread_limited[claims],
            spread_limit_milli=p.reservations.spread_limit_milli[claims],
            value_mrru=p.reservations.value_mrru[claims],
        ),
        affinities=replace(p.affinities, reservation=back[p.affinities.reservation]),
    )
    assert optimum(shuffled) == pytest.approx(optimum(p), rel=RELATIVE, abs=1e-9)


@examples(40)
@given(problem=problems())
def test_the_unit_of_capacity_means_nothing(problem: ServerAssignment) -> None:
    """Seven RRU where one was; limits are rounded, so they are whole thousandths of it here."""
    asked = problem.reservations.asked_mrru - problem.reservations.asked_mrru % 1000
    one = replace(problem, reservations=replace(problem.reservations, asked_mrru=asked))
    seven = replace(
        one,
        reservations=replace(one.reservations, asked_mrru=7 * asked, value_mrru=7 * problem.reservations.value_mrru),
    )
    assert optimum(seven) == pytest.approx(optimum(one), rel=RELATIVE, abs=1e-9)


def another(problem: ServerAssignment, like: int = 0) -> ServerAssignment:
    """One more server of a type and in a rack that there are, which nobody has."""
    p = problem
    return replace(
        p,
        servers=replace(
            p.servers,
            labels=(*p.servers.labels, "another"),
            type=np.append(p.servers.type, p.servers.type[like]),
            rack=np.append(p.servers.rack, p.servers.rack[like]),
            owner=np.append(p.servers.owner, len(p.reservations)),
            in_use=np.append(p.servers.in_use, False),
        ),
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
    "a buffer less": lambda p: replace(
        p,
        reservations=replace(
            p.reservations, buffer=np.where(p.reservations.buffer == EMBEDDED, NONE, p.reservations.buffer)
        ),
    ),
    "nobody backed": lambda p: replace(
        p,
        reservations=replace(
            p.reservations, buffer=np.where(p.reservations.buffer == SHARED, NONE, p.reservations.buffer)
        ),
    ),
    "no limits": lambda p: replace(
        p, reservations=replace(p.reservations, spread_limited=p.reservations.spread_limited & False)
    ),
    "wider tolerance": lambda p: replace(
        p, affinities=replace(p.affinities, tolerance_milli=np.full_like(p.affinities.tolerance_milli, 1000))
    ),
    "idle today": lambda p: replace(p, servers=replace(p.servers, in_use=p.servers.in_use & False)),
}


@pytest.mark.parametrize("change", LIGHTER.values(), ids=LIGHTER)
@examples(20)
@given(problem=problems(default_weights=True))
def test_what_asks_less_never_costs_more(change: Change, problem: ServerAssignment) -> None:
    """Of everything but what may not be worse than today, which depends on how today is judged."""
    unowned = replace(
        problem, servers=replace(problem.servers, owner=np.full(len(problem.servers), len(problem.reservations)))
    )
    start = problem if change is LIGHTER["idle today"] else unowned
    assert at_most(optimum(change(start)), optimum(start))


@examples(30)
@given(data=st.data(), problem=problems(default_weights=True))
def test_more_demand_never_helps(data: st.DataObject, problem: ServerAssignment) -> None:
    """Denominators frozen: what one reservation asks more, the weights make up for. No limits: they grow with it."""
    p = replace(
        problem, reservations=replace(problem.reservations, spread_limited=problem.reservations.spread_limited & False)
    )
    p = replace(p, servers=replace(p.servers, owner=np.full(len(p.servers), len(p.reservations))))
    asked = p.reservations.asked_mrru.copy()
    asked[data.draw(st.integers(0, len(asked) - 1))] += 700
    weights = dict(p.objective.weights)
    if p.reservations.asked_mrru.any():
        for name in ("shortfall", "spread", "buffer", "affinity", "repair"):
            weights[name] *= asked.sum() / p.reservations.asked_mrru.sum()
    more = replace(
        p, reservations=replace(p.reservations, asked_mrru=asked), objective=replace(p.objective, weights=weights)
    )
    assert at_most(optimum(p), optimum(more))
