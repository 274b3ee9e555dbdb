"""The challenge's text format: what is read is what is written; what is wrong is named."""

from __future__ import annotations

import gzip
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mast_opt.core.errors import InputError, InstanceError, UsageError
from mast_opt.problems.task_reassignment.generate import challenge
from mast_opt.problems.task_reassignment.tables.roadef import assignment_text, model_text, read
from mast_opt.problems.task_reassignment.verification.verifier import verify
from tests.task_reassignment.hand import MODEL, TODAY, hand, plan


def test_every_section_is_read(tmp_path: Path) -> None:
    p = hand(tmp_path)
    assert p.resources.transient.tolist() == [False, True]
    assert p.resources.load_weight.tolist() == [10, 1]
    assert p.machines.neighbourhood.tolist() == [0, 0, 1]
    assert p.machines.location.tolist() == [0, 1, 1]
    assert p.machines.capacity.tolist() == [[10, 8], [10, 8], [7, 8]]
    assert p.machines.safety.tolist() == [[6, 5], [6, 6], [5, 8]]
    assert p.move_groups.move_cost[np.ix_(p.machines.move_group, p.machines.move_group)].tolist() == [
        [0, 1, 2],
        [1, 0, 1],
        [2, 1, 0],
    ]
    assert p.services.spread_min.tolist() == [2, 1, 1]
    assert (p.dependencies.service.tolist(), p.dependencies.needs.tolist()) == ([1], [0])
    assert p.processes.service.tolist() == [0, 0, 1, 2, 2]
    assert p.processes.need.tolist() == [[4, 3], [3, 2], [3, 2], [2, 4], [2, 1]]
    assert p.processes.move_cost.tolist() == [2, 1, 3, 1, 1]
    goal = (p.balances.first, p.balances.second, p.balances.target, p.balances.weight)
    assert [part.tolist() for part in goal] == [[0], [1], [2], [5]]
    assert p.objective.weights == {
        "load": 1,
        "balance": 1,
        "process_move": 3,
        "service_move": 2,
        "machine_move": 5,
    }
    assert p.processes.initial.tolist() == [0, 2, 0, 1, 2]


def test_what_is_written_reads_back_the_same(tmp_path: Path) -> None:
    first = hand(tmp_path)
    second = hand(tmp_path, model_text(first), assignment_text(first.processes.initial))
    assert model_text(first).split() == MODEL.split()
    assert assignment_text(first.processes.initial) == TODAY
    assert first == second


@pytest.mark.parametrize("seed", range(5))
def test_a_generated_instance_costs_the_same_after_a_round_trip(seed: int, tmp_path: Path) -> None:
    """Load and balance weights go into the goals' own, groups of machines into costs between machines."""
    rng = np.random.default_rng(seed)
    made = challenge(rng, processes=20, machines=8, resources=3)
    groups = len(made.move_groups)
    weights = {**made.objective.weights, "load": 2.0, "balance": 3.0}
    problem = replace(
        made,
        move_groups=replace(made.move_groups, move_cost=rng.integers(0, 5, (groups, groups))),
        objective=replace(made.objective, weights=weights),
    )
    again = hand(tmp_path, model_text(problem), assignment_text(problem.processes.initial))
    for machine in (problem.processes.initial, *rng.integers(0, 8, (5, 20))):
        one, other = (verify(stated, plan(*machine.tolist())) for stated in (problem, again))
        assert one.objective == other.objective
        assert [found.name for found in one.violations] == [found.name for found in other.violations]


def test_what_the_format_cannot_say_is_refused(tmp_path: Path) -> None:
    problem = hand(tmp_path)
    half = replace(problem.objective, weights={**problem.objective.weights, "service_move": 0.5})
    with pytest.raises(UsageError, match=r"service_move is 0\.5"):
        model_text(replace(problem, objective=half))


def test_gzip_is_read_and_a_cut_one_refused(tmp_path: Path) -> None:
    hand(tmp_path)
    packed = tmp_path / "model_hand.txt.gz"
    packed.write_bytes(gzip.compress(MODEL.encode()))
    assert read(packed, tmp_path / "assignment_hand.txt").name == "hand"
    packed.write_bytes(packed.read_bytes()[:-12])
    with pytest.raises(InstanceError, match="complete gzip"):
        read(packed, tmp_path / "assignment_hand.txt")


@pytest.mark.parametrize("kept", range(len(MODEL.split())))
def test_a_model_cut_anywhere_is_refused(tmp_path: Path, kept: int) -> None:
    with pytest.raises(InstanceError, match=r"model_hand\.txt.*truncated"):
        hand(tmp_path, " ".join(MODEL.split()[:kept]))


@pytest.mark.parametrize(
    ("at", "value", "expected"),
    [
        (1, "2", "0 or 1"),
        (0, "0", "at least 1"),
        (2, "-4", "whole number"),
        (2, "4.5", "whole number"),
        (2, "ten", "whole number"),
        (2, "9" * 30, "whole number"),
        (12, "7", "to itself"),
        (38, "3", "a service below 3"),
        (42, "3", "a service below 3"),
        (63, "2", "a resource below 2"),
    ],
)
def test_a_wrong_number_is_named_by_its_position(tmp_path: Path, at: int, value: str, expected: str) -> None:
    tokens = MODEL.split()
    tokens[at] = value
    with pytest.raises(InstanceError, match=re.escape(f"number {at + 1}") + rf"\b.*{expected}"):
        hand(tmp_path, " ".join(tokens))


@pytest.mark.parametrize(
    ("today", "expected"),
    [("0 2 0 1", "truncated"), ("0 2 0 1 3", "a machine below 3"), ("0 2 0 1 2 2", "end of the file")],
)
def test_a_wrong_assignment_is_named(tmp_path: Path, today: str, expected: str) -> None:
    with pytest.raises(InstanceError, match=rf"assignment_hand\.txt.*{expected}"):
        hand(tmp_path, today=today)


def test_numbers_after_the_end_and_other_bytes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InstanceError, match="end of the file"):
        hand(tmp_path, MODEL + "1")
    (tmp_path / "model_hand.txt").write_bytes(b"2\n0 \xff")
    with pytest.raises(InstanceError, match="text made of whole numbers"):
        read(tmp_path / "model_hand.txt", tmp_path / "assignment_hand.txt")
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path / "absent.txt", tmp_path / "assignment_hand.txt")
