"""Small problems and plans of every shape, for property tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from mast_opt.problems.kind.header import Objective
from mast_opt.problems.server_assignment import Plan, ServerAssignment
from mast_opt.problems.server_assignment.entities import Affinities, Racks, Reservations, Servers, Switchboards
from mast_opt.problems.server_assignment.problem import EMBEDDED, NONE, POOL, SHARED, TERMS

ODD_LABELS = ("a b", "a_b", "ä", "data;", "end", "'", "1", "x,y", "über-schalt")
WEIGHTS = (0.0, 0.1, 1.0, 10.0, 1000.0)


def array(draw: st.DrawFn, values: st.SearchStrategy[int], size: int) -> np.ndarray:
    return np.array(draw(st.lists(values, min_size=size, max_size=size)), np.int64)


@st.composite
def problems(
    draw: st.DrawFn,
    *,
    servers: int = 8,
    reservations: int = 3,
    switchboards: int = 3,
    types: int = 2,
    odd_labels: bool = False,
    default_weights: bool = False,
) -> ServerAssignment:
    """Everything occurs: each buffer, limits and affinities that today breaks, worthless servers, nothing asked."""
    count, width = draw(st.integers(1, servers)), draw(st.integers(1, reservations))
    boards, kinds = draw(st.integers(1, switchboards)), draw(st.integers(1, types))
    centers = draw(st.integers(1, min(2, boards)))
    racks = boards + draw(st.integers(0, 2))
    buffer = array(draw, st.sampled_from([EMBEDDED, SHARED, NONE]), width)
    if (buffer == SHARED).any() or draw(st.booleans()):
        buffer[draw(st.integers(0, width - 1))] = POOL
    limited = array(draw, st.integers(0, 1), width) > 0
    wanted = sorted(draw(st.sets(st.tuples(st.integers(0, width - 1), st.integers(0, centers - 1)), max_size=2)))
    affinity = np.array(wanted, np.int64).reshape(-1, 2)
    names = ODD_LABELS if odd_labels else tuple(f"n{position}" for position in range(9))
    weights = dict(TERMS)
    if not default_weights and draw(st.booleans()):
        weights = {name: draw(st.sampled_from(WEIGHTS)) for name in weights}
        weights["moves_in_use"] = max(weights["moves_in_use"], weights["moves_idle"])  # idle servers move first
    return ServerAssignment(
        name="drawn",
        datacenters=names[:centers],
        switchboards=Switchboards(labels=names[:boards], datacenter=np.arange(boards) % centers),
        racks=Racks(labels=names[:racks], switchboard=np.arange(racks) % boards),
        types=names[:kinds],
        reservations=Reservations(
            labels=names[:width],
            asked_mrru=array(draw, st.sampled_from([0, 500, 1000, 1999, 3000, 4200]), width),
            buffer=buffer,
            spread_limited=limited,
            spread_limit_milli=np.where(limited, array(draw, st.integers(0, 1000), width), 0),
            value_mrru=array(draw, st.sampled_from([0, 700, 1000, 1000, 2500]), width * kinds).reshape(width, kinds),
        ),
        servers=Servers(
            labels=tuple(f"s{position}" for position in range(count)),
            type=array(draw, st.integers(0, kinds - 1), count),
            rack=array(draw, st.integers(0, racks - 1), count),
            owner=array(draw, st.integers(0, width), count),
            in_use=array(draw, st.integers(0, 1), count) > 0,
        ),
        affinities=Affinities(
            reservation=affinity[:, 0].copy(),
            datacenter=affinity[:, 1].copy(),
            share_milli=array(draw, st.integers(0, 1000), len(wanted)),
            tolerance_milli=array(draw, st.integers(0, 400), len(wanted)),
        ),
        objective=Objective(weights),
    )


@st.composite
def plans(draw: st.DrawFn, problem: ServerAssignment) -> Plan:
    """Any assignment, of servers that are worthless too."""
    return Plan(array(draw, st.integers(0, len(problem.reservations)), len(problem.servers)))
