"""Rounds: gangs whole, jobs in one configuration, shares kept up to a bound, few switches."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import UsageError
from mast_opt.live.policies import gavel
from mast_opt.live.policies.rounds import Progress, Rule, Turns, by_priority, most_owed, play
from tests.narrowing import some

GPUS = np.array([2, 2, 1])
EACH_RULE = pytest.mark.parametrize("rule", [by_priority, most_owed], ids=["by_priority", "most_owed"])


def owed_at_most(turns: Turns, rounds: int, *, stay: float = 0.0) -> float:
    """Bound on ‖owed‖₂ after so many rounds of ``most_owed``, where the shares are an average of rounds."""
    most_running = min(turns.jobs, len(turns.share))
    return float(np.sqrt(rounds * ((1 + 2 * stay) * most_running - (turns.share**2).sum())))


def average_of_rounds(jobs: int, seed: int) -> FloatArray:
    """[J, G] shares that some rounds have as their average, with all GPUs in use."""
    rng = np.random.default_rng(seed)
    share = np.zeros((jobs, len(GPUS)))
    kind = np.repeat(np.arange(len(GPUS)), GPUS)
    for weight in rng.dirichlet(np.ones(5)):
        share[rng.permutation(jobs)[: len(kind)], kind] += weight
    return share


def fits(turns: Turns, ran: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> bool:
    configuration, job = turns.member
    at_once = np.bincount(job[ran[configuration]], minlength=turns.jobs)
    return bool((ran @ turns.amount <= turns.capacity + 1e-6).all() and at_once.max(initial=0) <= 1)


@EACH_RULE
def test_rounds_keep_to_capacities_and_run_gangs_whole(rule: Rule) -> None:
    rng = np.random.default_rng(3)
    turns = Turns.of_types(rng.dirichlet(np.ones(3), 9) * 0.9, [4, 5, 8], gang=rng.choice([1, 2, 4], 9))
    progress = Progress.start(len(turns.share))
    for _ in range(12):
        ran = rule(turns, progress)
        assert fits(turns, ran)
        assert not ran[turns.share == 0].any()
        progress = progress.after(turns, ran)
    assert progress.received.sum() > 0


@EACH_RULE
def test_jobs_packed_together_run_together(rule: Rule) -> None:
    """Two jobs alone for half of the time on one GPU, and packed for the other half."""
    turns = Turns(
        np.array([0.25, 0.25, 0.5]), np.ones((3, 1)), np.ones(1), (np.array([0, 1, 2, 2]), np.array([0, 1, 0, 1]))
    )
    progress, _ = play(turns, 40, rule)
    assert progress.received == pytest.approx([10, 10, 20], abs=1)


@EACH_RULE
@pytest.mark.parametrize(("jobs", "seed"), [(5, 0), (8, 2)])
def test_shares_are_reached_and_what_is_owed_does_not_grow(rule: Rule, jobs: int, seed: int) -> None:
    turns = Turns.of_types(average_of_rounds(jobs, seed), GPUS)
    early, _ = play(turns, 20, rule)
    late, _ = play(turns, 80, rule)
    assert late.received / 80 == pytest.approx(turns.share, abs=0.06)
    assert late.owed.max() <= 4
    assert (late.received >= 80 * turns.share - late.owed - 1e-9).all()
    assert (early.received >= 20 * turns.share - early.owed - 1e-9).all()


@pytest.mark.parametrize("stay", [0.0, 1.0])
def test_the_bound_on_what_is_owed_holds_after_every_round(stay: float) -> None:
    turns = Turns.of_types(average_of_rounds(6, 5), GPUS)
    progress = Progress.start(len(turns.share))
    for rounds in range(1, 41):
        progress = progress.after(turns, most_owed(turns, progress, stay=stay))
        assert np.linalg.norm(progress.owed) <= owed_at_most(turns, rounds, stay=stay) + 1e-9


def test_the_bound_is_that_of_the_proof() -> None:
    turns = Turns.of_types([[0.5], [0.5]], [1])
    assert owed_at_most(turns, 4) == pytest.approx(np.sqrt(4 * (2 - 0.5)))
    assert owed_at_most(turns, 4, stay=1) == pytest.approx(np.sqrt(4 * (3 * 2 - 0.5)))


def test_shares_of_gangs_may_be_out_of_reach() -> None:
    """The counterexample: only one of two gangs of 3 runs on 4 GPUs, and each would have 2/3 of the time."""
    turns = Turns.of_types([[2 / 3], [2 / 3]], [4], gang=3.0)
    progress, _ = play(turns, 60, most_owed)
    assert progress.received.tolist() == [30, 30]
    assert progress.owed.sum() == pytest.approx(60 / 3, abs=1)
    assert np.linalg.norm(progress.owed) > owed_at_most(turns, 60)


@EACH_RULE
def test_staying_takes_fewer_switches(rule: Rule) -> None:
    turns = Turns.of_types(average_of_rounds(8, 4), GPUS)
    (_, often), (late, seldom) = (play(turns, 60, partial(rule, stay=stay)) for stay in (0.0, 1.5))  # type: ignore[call-arg]
    assert seldom < 0.7 * often
    assert late.received / 60 == pytest.approx(turns.share, abs=0.12)


def test_ties_go_to_those_who_run() -> None:
    turns = Turns.of_types([[0.5], [0.5]], [1])
    progress = Progress(np.ones(2), np.zeros(2), np.array([False, True]))
    assert by_priority(turns, progress).tolist() == [False, True]


def test_the_most_owed_round_is_the_best_of_all() -> None:
    rng = np.random.default_rng(8)
    turns = Turns.of_types(rng.uniform(0, 0.5, (4, 2)), [2, 3], gang=[1, 2, 1, 3])
    every = (np.arange(2**8)[:, None] >> np.arange(8)) & 1 == 1
    able = every[[fits(turns, ran) for ran in every]]
    for _ in range(5):
        progress = Progress(np.zeros(8), rng.uniform(0, 2, 8), np.zeros(8, np.bool_))
        worth = progress.owed + turns.share
        assert most_owed(turns, progress) @ worth == pytest.approx((able @ worth).max())


@EACH_RULE
def test_rounds_of_an_allocation_give_each_job_its_rate(rule: Rule) -> None:
    """With a pair, which runs on the GPU that both of its jobs leave."""
    pair = gavel.Pairs(np.array([[0, 1]]), np.array([[[2.0, 1], [3, 1.5]]]))
    program = gavel.tables(gavel.Jobs(np.array([[2.0, 1], [4, 2], [3, 2]]), pairs=pair), [1, 1])
    problem, found = program.problem(), program.solve()
    turns = Turns.of_allocation(problem, some(found.share))
    progress, _ = play(turns, 40, rule)
    rate = np.bincount(
        problem.members.job, problem.members.rate * progress.received[problem.members.configuration] / 40
    )
    assert rate == pytest.approx(some(found.rate), rel=0.05)


def test_wrong_input_is_named() -> None:
    with pytest.raises(UsageError, match=r"share\[1\] is 1.5; expected numbers from 0 to 1"):
        Turns.of_types([[0.5], [1.5]], [1])
    with pytest.raises(UsageError, match="amount has shape"):
        Turns(np.ones(2), np.ones((1, 1)), np.ones(1), (np.arange(2), np.arange(2)))
