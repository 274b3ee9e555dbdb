"""The search never loses track: after any number of changes, every sum and the cost are what they are afresh."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.generate import FAMILIES
from mast_opt.problems.data_placement.tetris.annealing.kernel import (
    Proposals,
    anneal,
    annealing_workspace,
    proposals_of,
)
from mast_opt.problems.data_placement.tetris.annealing.params import OperatorParams
from mast_opt.problems.data_placement.tetris.decomposition import Subproblem, decompose, merge, undivided
from mast_opt.problems.data_placement.tetris.incumbent import Assignment, assignment_of, plan_of, restore
from mast_opt.problems.data_placement.tetris.initial_solution import first_state, given_state
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays, arrays_of
from mast_opt.problems.data_placement.tetris.state import TetrisState, cost, excess, state_of
from mast_opt.problems.data_placement.verification.verifier import verify
from tests.data_placement.strategies import problems
from tests.examples import examples

PARAMS = OperatorParams()
TEMPERATURES = (0.0, 1e-3, 0.1, 10.0)
SUMS = [name for name in TetrisState._fields if name != "random"]


def begin(problem: DataPlacement, seed: int) -> tuple[TetrisArrays, TetrisState]:
    a = arrays_of(problem, dict(problem.objective.weights))
    return a, first_state(a, problem.may_refuse, seed)


def search(
    problem: DataPlacement, a: TetrisArrays, s: TetrisState, steps: int, temperature: float, guided: bool = False
) -> float:
    """Anneal at one temperature; returns the change in cost that the kernels report."""
    mix = proposals_of(PARAMS, compound=True, guided=guided)
    return float(
        anneal(
            undivided(a, s), steps, temperature, temperature, problem.may_refuse, annealing_workspace(a, PARAMS), mix
        )
    )


def search_in_parts(
    problem: DataPlacement, a: TetrisArrays, s: TetrisState, parts: int, steps: int, temperature: float, guided: bool
) -> float:
    """The same in parts, at the same time; returns the change in cost that kernels and ``join`` report."""
    random = [np.array([7 * number + 1], np.uint64) for number in range(parts)]
    split_up = decompose(a, s, np.random.default_rng(int(s.random[0] % 1000)), random)
    assert sorted(r for part in split_up for r in part.regions.tolist()) == list(range(len(problem.regions)))

    def work(part: Subproblem) -> float:
        mix = proposals_of(PARAMS, compound=True, guided=guided)
        return float(
            anneal(part, steps, temperature, temperature, problem.may_refuse, annealing_workspace(a, PARAMS), mix)
        )

    with ThreadPoolExecutor(parts) as pool:
        change = sum(pool.map(work, split_up))
    return change + merge(a, s, split_up)


def check_sums(a: TetrisArrays, s: TetrisState) -> None:
    afresh = state_of(a, s.option, s.region, s.place, 1)
    for name in SUMS:
        np.testing.assert_array_equal(getattr(s, name), getattr(afresh, name), err_msg=name)


def check_rules(a: TetrisArrays, s: TetrisState) -> None:
    """Rules that no change may break, whatever the start."""
    assert not (s.place & a.forbidden & ~a.pinned).any()  # what is both has no plan
    assert (s.place | ~a.pinned).all()
    regions = s.place.shape[1]
    assert a.option_region[s.option, s.region][s.region < regions].all()


@examples(150)
@given(
    problem=problems(regions=5, datasets=5, workloads=9, links=False, roomy=True),
    seed=st.integers(1, 2**31),
    parts=st.integers(2, 3),
    temperature=st.sampled_from(TEMPERATURES),
    guided=st.booleans(),
)
def test_parts_together_keep_every_sum_and_the_cost(
    problem: DataPlacement, seed: int, parts: int, temperature: float, guided: bool
) -> None:
    a, s = begin(problem, seed)
    feasible = excess(a, s, problem.may_refuse) == 0
    event(f"feasible start: {feasible}")
    for _ in range(3):
        before, was = cost(a, s), s.copy()
        change = search_in_parts(problem, a, s, min(parts, len(problem.regions)), 300, temperature, guided)
        check_sums(a, s)
        check_rules(a, s)
        if feasible:
            assert excess(a, s, problem.may_refuse) == 0
            assert cost(a, s) == pytest.approx(before + change, rel=1e-9, abs=1e-9)
        event(f"changed: {bool((was.region != s.region).any() or (was.place != s.place).any())}")


@examples(150)
@given(
    problem=problems(regions=4, datasets=5, workloads=7, links=False, roomy=True),
    seed=st.integers(1, 2**31),
    temperature=st.sampled_from(TEMPERATURES),
    guided=st.booleans(),
)
def test_many_changes_keep_every_sum_and_the_cost(
    problem: DataPlacement, seed: int, temperature: float, guided: bool
) -> None:
    a, s = begin(problem, seed)
    check_sums(a, s)
    feasible = excess(a, s, problem.may_refuse) == 0
    event(f"feasible start: {feasible}")
    before = cost(a, s)
    change = search(problem, a, s, 3000, temperature, guided)
    check_sums(a, s)
    check_rules(a, s)
    if feasible:
        assert cost(a, s) == pytest.approx(before + change, rel=1e-9, abs=1e-7)
        assert excess(a, s, problem.may_refuse) == 0


@examples(150)
@given(problem=problems(regions=4, datasets=5, workloads=7, links=False, roomy=False), seed=st.integers(1, 2**31))
def test_tight_limits_are_never_left_further_behind(problem: DataPlacement, seed: int) -> None:
    a, s = begin(problem, seed)
    pairs = ((s.cpu, a.cpu), (s.quota, a.quota), (s.storage, a.storage), (s.ingress, a.ingress))
    before = [np.maximum(used, limit) for used, limit in pairs]
    search(problem, a, s, 3000, 0.1)
    check_sums(a, s)
    check_rules(a, s)
    for most, (used, _) in zip(before, pairs):
        assert (used <= most).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_many_changes_keep_every_sum_in_every_family(family: str) -> None:
    problem = FAMILIES[family].generate(np.random.default_rng(3), datasets=40, workloads=60, regions=6)
    a, s = begin(problem, 5)
    for temperature in TEMPERATURES[::-1]:
        feasible = excess(a, s, problem.may_refuse) == 0
        before = cost(a, s)
        change = search(problem, a, s, 50_000, temperature)
        check_sums(a, s)
        check_rules(a, s)
        if feasible:
            assert cost(a, s) == pytest.approx(before + change, rel=1e-9, abs=1e-6)
            assert excess(a, s, problem.may_refuse) == 0


@examples(60)
@given(problem=problems(regions=3, datasets=4, workloads=5, links=False, splits=False, roomy=True))
def test_feasible_states_are_plans_at_their_cost(problem: DataPlacement) -> None:
    a, s = begin(problem, 7)
    search(problem, a, s, 1000, 0.01)
    assume(excess(a, s, problem.may_refuse) == 0)
    snapshot = Assignment(s.option, s.region, s.place)
    plan = plan_of(problem, snapshot)
    verdict = verify(problem, plan)
    assert verdict.violations == ()
    assert cost(a, s) == pytest.approx(verdict.objective, rel=1e-9, abs=1e-9)
    again = assignment_of(problem, plan)
    kept = given_state(a, *again, problem.may_refuse, 1)
    np.testing.assert_array_equal(kept.place, s.place)
    np.testing.assert_array_equal(kept.region, s.region)
    assert cost(a, kept) == pytest.approx(cost(a, s), rel=1e-12, abs=1e-12)


def test_restore_brings_back_a_snapshot() -> None:
    problem = FAMILIES["features"].generate(np.random.default_rng(1), datasets=15, workloads=20, regions=4)
    a, s = begin(problem, 1)
    kept, before = Assignment(s.option.copy(), s.region.copy(), s.place.copy()), s.copy()
    search(problem, a, s, 2000, 1.0)
    assert not np.array_equal(s.region, before.region)
    restore(a, s, kept)
    for name in SUMS:
        np.testing.assert_array_equal(getattr(s, name), getattr(before, name), err_msg=name)


def two_full_regions() -> DataPlacement:
    """Two regions, each filled by one dataset whose reader should be in the other one, where its GPUs are."""
    problem = FAMILIES["weakly-coupled"].generate(np.random.default_rng(1), datasets=2, workloads=2, regions=2)
    one = np.ones(2, np.int64)
    return problem.with_columns(
        {
            "gpu_types": ("h100",),
            "workloads.tier": 0 * one,
            "workloads.cpu_mcores": one,
            "reads.workload": np.arange(2),
            "reads.dataset": np.arange(2),
            "reads.mb_per_day": one,
            "options.workload": np.arange(2),
            "options.gpu_type": 0 * one,
            "options.mgpu": np.array([8_000, 64_000]),
            "datasets.size_mb": np.array([100, 90]),
            "datasets.stored": np.eye(2, dtype=np.bool_),
            "regions.storage_mb": 100 * one,
            "regions.cpu_mcores": one,
            "regions.supply_mgpu": np.array([[64_000], [8_000]]),
            "regions.gpu_price_micro": np.zeros((2, 1), np.int64),
        }
    )


COMPOUND = ("compound_move", "compound_swap")


def with_only(operator: str) -> Proposals:
    """Of the compound moves one kind, or none."""
    move, swap = (float(operator == name) for name in COMPOUND)
    return proposals_of(replace(PARAMS, compound_move=move, compound_swap=swap), compound=True)


@pytest.mark.parametrize("operator", ["none", *COMPOUND])
def test_only_a_compound_swap_exchanges_datasets_that_fill_their_regions(operator: str) -> None:
    problem = two_full_regions()
    a = arrays_of(problem, dict(problem.objective.weights))
    s = state_of(a, np.arange(2), np.arange(2), np.eye(2, dtype=np.bool_), 1)
    before = cost(a, s)
    mix = with_only(operator)
    change = anneal(undivided(a, s), 3000, 0.0, 0.0, False, annealing_workspace(a, PARAMS), mix)
    check_sums(a, s)
    assert excess(a, s, False) == 0
    assert cost(a, s) == pytest.approx(before + change, rel=1e-9)
    np.testing.assert_array_equal(s.region, [1, 0] if operator == "compound_swap" else [0, 1])


def test_only_a_compound_move_takes_a_dataset_with_its_readers_to_an_empty_region() -> None:
    """Both readers of the one dataset share a region whose GPUs are few; remote reads are forbidden."""
    problem = two_full_regions()
    together = problem.with_columns(
        {
            "reads.dataset": np.zeros(2, np.int64),
            "regions.supply_mgpu": np.array([[8_000], [72_000]]),
            "regions.storage_mb": np.full(2, 1_000),
            "regions.cpu_mcores": np.full(2, 10),
            "datasets.copies_max": np.ones(2, np.int64),
            "datasets.copies_min": np.array([1, 0]),
        }
    )
    place = np.array([[True, False], [False, False]])
    for name in ("none", *COMPOUND):
        a = arrays_of(together, dict(together.objective.weights))
        s = state_of(a, np.arange(2), np.zeros(2, np.int64), place, 1)
        mix = with_only(name)
        anneal(undivided(a, s), 3000, 0.0, 0.0, False, annealing_workspace(a, PARAMS), mix)
        check_sums(a, s)
        np.testing.assert_array_equal(s.region, [1, 1] if name == "compound_move" else [0, 0])


OPERATORS = ("move", "twins", "swap", *COMPOUND)
SHAPES = {
    "standard": {},
    "features": {},
    "weakly-coupled": {"remote_reads": False},
    "tight-storage": {"may_refuse": True},
}


def accepted(problem: DataPlacement, operator: str, guided: bool, temperature: float, steps: int, seed: int) -> int:
    """Propose changes of one operator, one at a time, from a feasible state; returns how many were made.

    What the operator says that it changes in the cost (an evaluation before the move, for workloads), the sums that it
    applies, and the cost recomputed agree after each; a change that is not made leaves everything as it was.
    """
    shares = {name: float(name == operator) for name in OPERATORS} | {"guided_twins": float(operator == "twins")}
    params = replace(PARAMS, **shares)  # type: ignore[arg-type]
    mix, (a, s) = proposals_of(params, compound=True, guided=guided), begin(problem, seed)
    part, workspace = undivided(a, s), annealing_workspace(a, params)
    if excess(a, s, problem.may_refuse):
        return 0
    made = 0
    for _ in range(steps):
        before, was = cost(a, s), s.copy()
        change = float(anneal(part, 1, temperature, temperature, problem.may_refuse, workspace, mix))
        moved = any(not np.array_equal(getattr(s, name), getattr(was, name)) for name in ("option", "region", "place"))
        check_sums(a, s)
        if moved:
            made += 1
            assert excess(a, s, problem.may_refuse) == 0
            assert cost(a, s) - before == pytest.approx(change, rel=1e-9, abs=1e-9)
        else:
            assert change == 0.0
            assert all(np.array_equal(getattr(s, name), getattr(was, name)) for name in SUMS)
    return made


@pytest.mark.parametrize("operator", OPERATORS)
@examples(15)
@given(
    problem=problems(regions=4, datasets=5, workloads=7, links=False, roomy=True),
    seed=st.integers(1, 2**31),
    temperature=st.sampled_from(TEMPERATURES),
    guided=st.booleans(),
)
def test_evaluate_apply_and_recomputed_cost_agree(
    operator: str, problem: DataPlacement, seed: int, temperature: float, guided: bool
) -> None:
    event(f"made: {accepted(problem, operator, guided, temperature, 30, seed) > 0}")


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator_makes_changes_whose_cost_agrees(operator: str) -> None:
    made = {}
    for family, rules in SHAPES.items():
        problem = FAMILIES[family].generate(np.random.default_rng(3), datasets=24, workloads=36, regions=5)
        made[family] = accepted(problem.with_columns(rules), operator, False, 1.0, 250, 3)
    assert sum(made.values()) >= 5, made
