"""Problems as values: equality, hashes, texts, pickles, and rows that are replaced by label."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mast_opt.core.errors import InstanceError, UsageError
from mast_opt.problems.kind.problem_data import Entities, Ints
from mast_opt.problems.kind.schema import need
from mast_opt.problems.kind.stated_columns import stated
from mast_opt.problems.task_reassignment import TaskReassignment
from mast_opt.problems.task_reassignment.entities import Machines
from tests.task_reassignment.hand import hand


@pytest.fixture
def problem(tmp_path: Path) -> TaskReassignment:
    return hand(tmp_path)


def test_equal_content_is_equal(problem: TaskReassignment, tmp_path: Path) -> None:
    twin = hand(tmp_path)
    assert problem is not twin
    assert problem == twin
    assert problem.machines == twin.machines
    assert hash(problem) == hash(twin)
    assert hash(problem.machines) == hash(twin.machines)
    other = problem.replace("machines", "m0", balanced=not problem.machines.balanced[0])
    assert problem != other
    assert problem.machines != other.machines
    assert problem.processes == other.processes
    assert problem != "model"


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_copies_are_equal_and_read_only(problem: TaskReassignment, duplicate: Any) -> None:
    assert problem.held.any()
    twin = duplicate(problem)
    assert twin == problem
    assert np.array_equal(twin.held, problem.held)
    assert type(twin.machines.labels) is type(problem.machines.labels)
    with pytest.raises(ValueError, match="read-only"):
        twin.machines.capacity[0, 0] = 1
    with pytest.raises(FrozenInstanceError):
        twin.machines.capacity = problem.machines.capacity


def test_texts_are_short(problem: TaskReassignment) -> None:
    assert repr(problem).startswith("TaskReassignment(name='hand', resources=2, ")
    assert repr(problem.machines).startswith("Machines(3 machines: capacity, safety, location, ")


def test_groups_that_do_not_change_are_shared(problem: TaskReassignment) -> None:
    other = problem.replace("machines", "m1", capacity={"r0": 99})
    assert other.processes is problem.processes
    assert other.machines.safety is problem.machines.safety
    assert other.machines.capacity[1].tolist() == [99, problem.machines.capacity[1, 1]]
    assert problem.machines.capacity[1, 0] != 99


def test_rows_of_entities_by_label(problem: TaskReassignment) -> None:
    moved = problem.replace("processes", "p0", initial="m1", move_cost=7, need=[1, 2])
    assert moved.processes.initial[0] == 1
    assert moved.processes.move_cost[0] == 7
    assert moved.processes.need[0].tolist() == [1, 2]


def test_some_rows_only(problem: TaskReassignment) -> None:
    machines = problem.machines.rows(np.array([2, 0]))
    assert machines.labels == (problem.machines.labels[2], problem.machines.labels[0])
    assert machines.capacity.tolist() == problem.machines.capacity[[2, 0]].tolist()
    groups = problem.move_groups
    last = np.arange(len(groups)) == len(groups) - 1
    assert groups.rows(last).move_cost.tolist() == [[groups.move_cost[-1, -1]]]
    assert problem.processes.rows(problem.processes.initial >= 0) == problem.processes
    assert len(problem.balances.rows(problem.balances.weight < 0)) == 0


def test_rows_of_relations_by_key(problem: TaskReassignment) -> None:
    goal = problem.balances
    row = ("r0", "r1", int(goal.target[0]))
    assert problem.replace("balances", row, weight=3).balances.weight.tolist() == [3]
    assert problem.replace("dependencies", ("s1", "s0"), needs="s2").dependencies.needs.tolist() == [2]


@pytest.mark.parametrize(
    ("group", "row", "values", "words"),
    [
        ("machine", "m0", {}, "there is no group 'machine'; expected one of: resources, "),
        ("machines", "m9", {}, "row of machines: there is no 'm9' among the 3 machines"),
        ("machines", ("m0",), {}, "among the 3 machines"),
        ("machines", "M1", {}, "did you mean 'm1'"),
        ("machines", "m0", {"size": 1}, "machines has no column 'size'; expected one of: capacity, safety, location, "),
        ("machines", "m0", {"location": "l7"}, "location of 'm0' in machines: there is no 'l7' among the 2 locations"),
        ("machines", "m0", {"location": 1}, "there is no 1 among the 2 locations"),
        ("machines", "m0", {"location": None}, "there is no None among the 2 locations"),
        ("machines", "m0", {"capacity": {"r5": 1}}, "there is no 'r5' among the 2 resources"),
        (
            "machines",
            "m0",
            {"capacity": {"r0": 1.5}},
            "capacity of 'm0' in machines, r0 is 1.5; expected a whole number",
        ),
        ("machines", "m0", {"capacity": [1, 2, 3]}, "expected 2 values, or a mapping from labels"),
        ("machines", "m0", {"capacity": 4}, "expected 2 values, or a mapping from labels"),
        ("machines", "m0", {"balanced": 1}, "is 1; expected true or false"),
        ("processes", "p0", {"move_cost": True}, "is True; expected a whole number"),
        ("processes", "p0", {"move_cost": 2**63}, "fits in 64 bits"),
        ("dependencies", ("s0", "s1"), {}, r"dependencies has no row \(s0, s1\)"),
        ("dependencies", "s0", {}, r"expected a tuple \(service, needs\)"),
    ],
)
def test_what_cannot_be_replaced(
    problem: TaskReassignment, group: str, row: Any, values: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        problem.replace(group, row, **values)


def test_faults_name_entity_label_value_and_expectation(problem: TaskReassignment) -> None:
    with pytest.raises(InstanceError, match=r"processes\.need\[p3, 1\]: found '-2'; expected at least 0"):
        problem.replace("processes", "p3", need={"r1": -2})
    need = problem.processes.need.copy()
    need[2, 0] = -1
    with pytest.raises(InstanceError, match=r"processes\.need\[p2, 0\]: found '-1'; expected at least 0"):
        replace(problem.processes, need=need)
    wrong = problem.processes.initial.copy()
    wrong[1] = 3
    with pytest.raises(
        InstanceError, match=r"processes\.initial\[p1\]: found '3'; expected a position on machines, from 0"
    ):
        replace(problem, processes=replace(problem.processes, initial=wrong))


def test_groups_that_do_not_fit_one_another(problem: TaskReassignment) -> None:
    narrow = replace(problem.machines, capacity=problem.machines.capacity[:, :1], safety=problem.machines.safety[:, :1])
    with pytest.raises(InstanceError, match=r"machines\.capacity: found 'shape \(3, 1\)'; expected shape \(3, 2\)"):
        replace(problem, machines=narrow)
    with pytest.raises(InstanceError, match=r"machines: found .*expected a Machines"):
        replace(problem, machines=problem.services)  # type: ignore[arg-type]


def test_relabelled(problem: TaskReassignment) -> None:
    other = problem.relabelled({"machines": ("a", "b", "c"), "locations": ("x", "y")})
    assert other.labels_of("machines") == ("a", "b", "c")
    assert other.locations == ("x", "y")
    with pytest.raises(UsageError, match="there is no axis 'need'; expected one of: locations, neighbourhoods, resour"):
        other.labels_of("need")


@dataclass(frozen=True, eq=False, repr=False)
class Shelves(Entities):
    """A group with a trial column and a column without a default."""

    AXIS = "shelves"

    width: Ints = stated(need("width", 10))
    """[S] width, in tenths."""
    price: Ints = stated(need("price", 1, default=3, required=False, later=True))
    """[S] price."""


SHELVES = Shelves(labels=("a", "b"), width=np.array([10, 20]))


def test_a_column_that_nobody_states_follows_other_rows() -> None:
    longer = SHELVES.with_arrays(labels=("a", "b", "c"), width=np.array([10, 20, 30]))
    assert longer.price.tolist() == [3, 3, 3]
    assert SHELVES.with_arrays(labels=("a",), width=np.array([10])).price.tolist() == [3]
    assert SHELVES.with_arrays(width=np.array([1, 2])).price is SHELVES.price
    priced = SHELVES.with_arrays(price=np.array([3, 4]))
    with pytest.raises(InstanceError, match=r"shelves\.price: found 'shape \(2,\)'; expected shape \(3,\)"):
        priced.with_arrays(labels=("a", "b", "c"), width=np.array([10, 20, 30]))


def test_further_rows_have_the_default_of_a_column_that_is_left_out() -> None:
    priced = SHELVES.with_arrays(price=np.array([3, 4]))
    longer = priced.appended(labels=["c"], width=np.array([30]))
    assert (longer.labels, longer.width.tolist(), longer.price.tolist()) == (("a", "b", "c"), [10, 20, 30], [3, 4, 3])
    assert priced.appended(labels=["c"], width=np.array([30]), price=np.array([5])).price.tolist() == [3, 4, 5]
    with pytest.raises(InstanceError, match=r"shelves\.width: found 'shape \(2,\)'; expected shape \(3,\)"):
        priced.appended(labels=["c"])


def test_rows_with_other_arrays_keep_the_rest() -> None:
    priced = SHELVES.with_arrays(price=np.array([3, 4]))
    parts = priced.rows(np.array([1, 1, 0]), labels=("x", "y", "z"), width=np.array([1, 2, 3]))
    assert (parts.labels, parts.width.tolist(), parts.price.tolist()) == (("x", "y", "z"), [1, 2, 3], [4, 4, 3])


def test_the_arrays_of_the_caller_stay_theirs(problem: TaskReassignment) -> None:
    capacity = problem.machines.capacity.copy()
    machines: Machines = replace(problem.machines, capacity=capacity)
    capacity[0, 0] = 0
    assert machines.capacity[0, 0] == problem.machines.capacity[0, 0] > 0
    assert not machines.capacity.flags.writeable
