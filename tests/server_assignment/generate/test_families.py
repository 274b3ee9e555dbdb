"""What the families promise."""

from __future__ import annotations

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import UsageError
from mast_opt.problems.server_assignment import ServerAssignment
from mast_opt.problems.server_assignment.generate import FAMILIES
from mast_opt.problems.server_assignment.plan import today
from mast_opt.problems.server_assignment.presentation.sections import sections
from mast_opt.problems.server_assignment.problem import POOL, SHARED
from mast_opt.problems.server_assignment.verification.measures import Measure
from mast_opt.problems.server_assignment.verification.verifier import verify


def made(family: str, seed: int = 0, **sizes: int) -> ServerAssignment:
    problem = mast_opt.generate("server-assignment", family, seed=seed, **sizes)
    assert isinstance(problem, ServerAssignment)
    return problem


@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_seed_gives_the_same_instance(family: str) -> None:
    one, again, other = (mast_opt.checksum(made(family, seed)) for seed in (1, 1, 2))
    assert one == again != other


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("sizes", [(1, 1, 1), (3, 7, 2), (50, 5, 4)])
def test_every_size_gives_an_instance_that_today_is_a_plan_of(family: str, sizes: tuple[int, int, int]) -> None:
    problem = made(family, servers=sizes[0], reservations=sizes[1], datacenters=sizes[2])
    assert (len(problem.servers), len(problem.reservations)) == sizes[:2]
    assert verify(problem, today(problem)).ok
    assert not (problem.reservations.buffer == SHARED).any() or (problem.reservations.buffer == POOL).sum() == 1


def test_the_topology_is_that_of_a_fleet() -> None:
    problem = made("standard", servers=20_000, reservations=40, datacenters=3)
    assert len(problem.switchboards) == 3 * 36
    per_board = np.bincount(problem.server_switchboard)
    per_center = np.bincount(problem.switchboards.datacenter[problem.server_switchboard])
    assert per_board.max() < 0.03 * per_center.min()
    assert all(len(set(problem.servers.type[problem.servers.rack == rack].tolist())) == 1 for rack in range(50))
    assert len({tuple(row) for row in problem.reservations.value_mrru.tolist()}) > 20, (
        "generations are worth more to some"
    )


def test_standard_is_nearly_right_today() -> None:
    problem = made("standard", servers=20_000, reservations=40, datacenters=3)
    verdict = verify(problem, today(problem))
    assert 0 < verdict.terms["shortfall"] < 0.05
    assert verdict.terms["use"] == pytest.approx(0.88, abs=0.01)


def test_the_variants_are_what_they_say() -> None:
    sizes = {"servers": 5000, "reservations": 20, "datacenters": 3}
    assert not made("fresh", **sizes).owned.any()
    standard = Measure(problem := made("standard", **sizes), problem.servers.owner)
    scarce = Measure(problem := made("scarce", **sizes), problem.servers.owner)
    crowded = Measure(problem := made("crowded", **sizes), problem.servers.owner)
    assert scarce.short.sum() > 0.15 * scarce.p.reservations.asked_mrru.sum()
    assert crowded.excess.sum() > 10 * standard.excess.sum()


def test_features_leaves_nothing_out() -> None:
    problem = made("features", servers=200, reservations=8)
    now = Measure(problem, problem.servers.owner)
    assert set(problem.reservations.buffer.tolist()) == {0, 1, 2, 3}
    assert (now.excess > 0).any()
    assert (now.slack_milli > 0).any()
    assert (now.worth == 0).any()
    assert (problem.servers.in_use & ~problem.owned).any()


def test_sizes_are_checked() -> None:
    with pytest.raises(UsageError, match="servers is 0"):
        made("standard", servers=0)


def test_sections_tell_who_gains_and_loses() -> None:
    problem = made("standard", servers=400, reservations=6)
    solution = mast_opt.solve(problem, "highs", gap=0.05, time_limit_s=30)
    assert solution.plan is not None
    reservations, moves, boards, types = sections(problem, solution.plan)
    assert len(reservations.rows) == 6
    gained = [head.title for head in reservations.heads].index("servers gained")
    count = [head.title for head in moves.heads].index("servers")
    to = [head.title for head in moves.heads].index("to")
    for row in reservations.rows:
        assert row[gained] == sum(int(move[count] or 0) for move in moves.rows if move[to] == row[0])
    changed = int((solution.plan.reservation != problem.servers.owner).sum())
    assert sum(int(move[count] or 0) for move in moves.rows) == changed
    assert sum(int(row[2] or 0) for row in boards.rows) == sum(int(row[1] or 0) for row in types.rows) == 400
