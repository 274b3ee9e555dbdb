"""Counts and named servers: expansion moves as few as possible, and the rows judge a plan as the verifier does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import mast_opt
from mast_opt.core.arrays import FloatArray
from mast_opt.problems.mip import Mip
from mast_opt.problems.server_assignment import Plan, ServerAssignment
from mast_opt.problems.server_assignment.formulation.disaggregation import expand
from mast_opt.problems.server_assignment.formulation.formulation import base
from mast_opt.problems.server_assignment.formulation.index_sets import counted, pairs_of
from mast_opt.problems.server_assignment.plan import today
from mast_opt.problems.server_assignment.verification.measures import Measure
from mast_opt.problems.server_assignment.verification.verifier import verify
from tests.examples import examples
from tests.server_assignment.strategies import plans, problems


def broken_rows(mip: Mip, x: FloatArray) -> set[str]:
    """Rows that x breaks by more than the rounding of thousandths, and columns that leave their bounds."""
    activity = mip.activity(x)
    rows = (activity > mip.row_upper + 1e-6) | (activity < mip.row_lower - 1e-6)
    columns = (x > mip.col_upper + 1e-9) | (x < mip.col_lower - 1e-9)
    names = {name for name, broken in zip(mip.row_names(), rows.tolist(), strict=True) if broken}
    return names | {name for name, broken in zip(mip.column_names(), columns.tolist(), strict=True) if broken}


@examples(100)
@given(data=st.data(), problem=problems())
def test_the_rows_judge_counts_as_the_verifier_judges_servers(data: st.DataObject, problem: ServerAssignment) -> None:
    drawn: Plan = data.draw(plans(problem))
    pairs = pairs_of(problem)
    plan = expand(problem, pairs, np.minimum(counted(problem, pairs, drawn.reservation), pairs.most))
    formulation = base(problem)
    x = formulation.encode(plan)
    verdict = verify(problem, plan)
    event(f"violations: {min(len(verdict.violations), 3)}")
    assert broken_rows(formulation.mip, x) == {violation.name for violation in verdict.violations}
    assert formulation.mip.objective(x) == pytest.approx(verdict.objective, rel=1e-9, abs=1e-9)
    assert formulation.decode(x).reservation.tolist() == plan.reservation.tolist()


@examples(150)
@given(data=st.data(), problem=problems())
def test_expansion_keeps_the_counts_and_moves_no_more_than_the_plan(
    data: st.DataObject, problem: ServerAssignment
) -> None:
    drawn: Plan = data.draw(plans(problem))
    pairs = pairs_of(problem)
    count = np.minimum(counted(problem, pairs, drawn.reservation), pairs.most)
    plan = expand(problem, pairs, count)
    assert counted(problem, pairs, plan.reservation).tolist() == count.tolist()
    then = Measure(problem, plan.reservation)
    left = np.maximum(pairs.today - count, 0)
    assert len(then.taken) == left.sum()
    assert problem.servers.in_use[then.taken].sum() == np.maximum(left - pairs.idle, 0).sum()


def test_free_servers_go_before_idle_ones_and_racks_take_turns() -> None:
    problem = mast_opt.generate("server-assignment", "fresh", servers=96, reservations=1, datacenters=1)
    pairs = pairs_of(problem)
    plan = expand(problem, pairs, pairs.most // 2)
    used = plan.reservation == 0
    for stock in range(len(problem.stocks)):
        members = problem.stocks.members(stock)
        racks = problem.servers.rack[members]
        per_rack = np.array([used[members[racks == rack]].sum() for rack in np.unique(racks)])
        sizes = np.array([(racks == rack).sum() for rack in np.unique(racks)])
        assert np.ptp(per_rack[sizes == sizes.max()]) <= 1


def test_more_servers_than_there_are_is_an_error() -> None:
    problem = mast_opt.generate("server-assignment", servers=40, reservations=2, datacenters=1)
    pairs = pairs_of(problem)
    with pytest.raises(ValueError, match="add up to"):
        expand(problem, pairs, pairs.most + 1)


@examples(60)
@given(problem=problems())
def test_today_is_a_plan_that_breaks_nothing_and_moves_nobody(problem: ServerAssignment) -> None:
    verdict = verify(problem, today(problem))
    assert verdict.ok
    assert verdict.terms["moves_in_use"] == verdict.terms["moves_idle"] == 0
    formulation = base(problem)
    assert formulation.decode(formulation.encode(today(problem))).reservation.tolist() == problem.servers.owner.tolist()
