"""The groups of a server-assignment problem: rows by label, and what is refused."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import InstanceError, UsageError
from mast_opt.problems.server_assignment import ServerAssignment
from mast_opt.problems.server_assignment.entities import LARGEST, POOL, SHARED


@pytest.fixture
def problem() -> ServerAssignment:
    """The last reservation is the pool."""
    return mast_opt.generate("server-assignment", "features", seed=1, servers=40, reservations=5)


def test_rows_by_label(problem: ServerAssignment) -> None:
    server, other = problem.servers.labels[3], problem.reservations.labels[2]
    given = problem.replace("servers", server, owner=other, in_use=True)
    assert given.servers.owner[3] == 2
    assert given.working[3]
    free = given.replace("servers", server, owner=None)
    assert free.servers.owner[3] == len(problem.reservations)
    assert not free.owned[3]
    kind = problem.types[0]
    worth = problem.replace("reservations", other, asked_mrru=500, value_mrru={kind: 7}).reservations
    assert worth.asked_mrru[2] == 500
    assert worth.value_mrru[2].tolist() == [7, *problem.reservations.value_mrru[2, 1:].tolist()]
    near = problem.affinities
    key = problem.reservations.labels[near.reservation[1]], problem.datacenters[near.datacenter[1]]
    changed = problem.replace("affinities", key, share_milli=123)
    assert changed.affinities.share_milli[1] == 123
    assert changed.servers is problem.servers


def test_copies_are_equal(problem: ServerAssignment) -> None:
    assert problem.stocks.size.sum() == len(problem.servers)
    twin = pickle.loads(pickle.dumps(problem))
    assert twin == problem
    assert twin.replace("servers", problem.servers.labels[0], in_use=not problem.servers.in_use[0]) != problem
    assert "servers=40, reservations=5, " in repr(problem)


def test_a_rack_is_found_by_its_label_where_that_is_unique(problem: ServerAssignment) -> None:
    moved = problem.replace("racks", problem.racks.labels[0], switchboard=problem.switchboards.labels[1])
    assert moved.racks.switchboard[0] == 1
    same = problem.relabelled({"racks": ("r",) * len(problem.racks)})
    with pytest.raises(UsageError, match="'r' is the label of several racks"):
        same.replace("racks", "r", switchboard=problem.switchboards.labels[1])


def test_one_pool_at_most_and_one_where_a_buffer_is_shared(problem: ServerAssignment) -> None:
    first, last = problem.reservations.labels[0], problem.reservations.labels[-1]
    assert (problem.reservations.buffer == SHARED).any()
    with pytest.raises(InstanceError, match=rf"reservations\.buffer\[{last}\]: found '{POOL}'; expected one pool"):
        problem.replace("reservations", first, buffer=POOL)
    with pytest.raises(InstanceError, match=r"reservations\.buffer\[.*the pool, where any is shared"):
        problem.replace("reservations", last, buffer=0)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"asked_mrru": LARGEST + 1, "spread_limit_milli": 0}, r"asked_mrru: .*so that sums stay exact"),
        ({"asked_mrru": LARGEST, "spread_limit_milli": 1001}, r"spread_limit_milli\[.*a smaller product"),
    ],
)
def test_sums_that_are_not_exact(problem: ServerAssignment, values: dict[str, Any], words: str) -> None:
    with pytest.raises(InstanceError, match=words):
        problem.replace("reservations", problem.reservations.labels[0], **values)


def test_values_of_all_servers_are_exact(problem: ServerAssignment) -> None:
    huge = np.full_like(problem.reservations.value_mrru, LARGEST // len(problem.servers) + 1)
    reservations = replace(problem.reservations, value_mrru=huge)
    with pytest.raises(InstanceError, match=r"reservations\.value_mrru: .*so that sums stay exact"):
        replace(problem, reservations=reservations)
    with pytest.raises(InstanceError, match=r"servers\.owner\[.*expected a position on reservations, from 0 to 5"):
        problem.with_columns({"servers.owner": problem.servers.owner + 6})


def test_an_objective_that_would_move_servers_in_use_first(problem: ServerAssignment) -> None:
    weights = {**problem.objective.weights, "moves_in_use": 0.5}
    with pytest.raises(InstanceError, match="idle servers always move first"):
        replace(problem, objective=replace(problem.objective, weights=weights))
