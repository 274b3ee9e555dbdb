"""What the present assignment breaks, by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mast_opt.problems.server_assignment.analysis.current_state import current_state
from tests.server_assignment.verification.test_certificate_cases import drifting


def test_limits_that_today_breaks_and_no_others() -> None:
    """ads asks for 2 RRU, at most 0.5 at each switchboard and none in the only datacenter, where it has 1. feed asks
    for nothing and has a server that is worth nothing to it."""
    one = drifting()
    width = len(one.types)
    problem = replace(
        one,
        reservations=replace(
            one.reservations,
            labels=("ads", "feed"),
            buffer=np.repeat(one.reservations.buffer, 2),
            asked_mrru=np.array([2000, 0]),
            spread_limited=np.ones(2, np.bool_),
            spread_limit_milli=np.array([250, 1000]),
            value_mrru=np.array([[1000] * width, [0] * width]),
        ),
        servers=replace(one.servers, owner=np.array([0, 1])),
    )
    board, datacenter, kind = problem.switchboards.labels[0], problem.datacenters[0], problem.types[0]
    state = current_state(problem)
    assert [(row.limit, row.index, row.message) for row in state.broken] == [
        ("worth", ("feed", kind), f"feed has 1 server of type {kind}, which are worth nothing to it"),
        ("shortfall", ("ads",), "ads lacks 1 RRU"),
        ("spread", ("ads", board), f"ads is 0.5 RRU over its spread limit at {board}"),
        ("affinity", ("ads", datacenter), f"ads is off its share in {datacenter} by 1 RRU"),
    ]
    assert [(row.what, row.known, row.of) for row in state.known] == [("servers", 2, 2)]
    fine = replace(
        problem,
        reservations=replace(problem.reservations, asked_mrru=np.zeros(2, np.int64)),
        affinities=replace(problem.affinities, reservation=np.array([1])),
        servers=replace(problem.servers, owner=np.array([2, 2])),
    )
    assert current_state(fine).broken == ()
