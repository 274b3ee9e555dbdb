"""The generated families: sound, as full as asked, and the same whenever they are asked for."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from mast_opt.core.errors import UsageError
from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.job_placement.generate import FAMILIES
from mast_opt.problems.job_placement.generate.families import asked_and_taken
from mast_opt.problems.job_placement.plan import empty
from mast_opt.problems.job_placement.tables.problem_tables import problem_from_tables, problem_to_tables
from mast_opt.problems.job_placement.verification.verifier import verify

GOLDEN = {
    "standard": "b226f4987dc9b09f",
    "study": "066bdd62e253aa2e",
    "shared-gpus": "dec3144f98f0fe4f",
    "lexicographic": "4faf1ce58fc13c45",
    "features": "8c544f0fc84fd2b5",
}


def fingerprint(problem: JobPlacement) -> str:
    digest = hashlib.blake2b(digest_size=8)
    p = problem
    arrays = (p.servers.supply, p.servers.rack, p.servers.gpu_type, p.jobs.tier, p.jobs.tasks, p.options.mgpu)
    for array in (*arrays, p.allocations.need, p.running.at_risk_mgpu_hours):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_seed_gives_what_it_gave_when_this_was_written(family: str) -> None:
    assert fingerprint(FAMILIES[family].generate(np.random.default_rng(1))) == GOLDEN[family]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_instance_is_sound(family: str) -> None:
    for seed in range(5):
        problem = FAMILIES[family].generate(np.random.default_rng(seed))
        assert problem_from_tables(*problem_to_tables(problem)).jobs.labels == problem.jobs.labels
        assert verify(problem, empty(problem)).ok


@pytest.mark.parametrize("percent", [80, 92, 100])
def test_a_fleet_is_as_full_as_asked(percent: int) -> None:
    problem = FAMILIES["standard"].generate(np.random.default_rng(3), fill_percent=percent)
    used = 1 - problem.free[:, 0].sum() / problem.all_mgpu
    assert percent / 100 <= used <= percent / 100 + 0.02


def test_the_study_asks_for_more_than_can_be_admitted_and_not_for_much_more() -> None:
    ratios = []
    for seed in range(40):
        asked, taken = asked_and_taken(FAMILIES["study"].generate(np.random.default_rng(seed)))
        ratios.append(asked[-1] / taken[-1])
    assert np.mean((np.array(ratios) > 1.05) & (np.array(ratios) < 1.55)) > 0.8


def test_some_jobs_have_a_part_of_cpu_servers() -> None:
    """The rest of the instance is the same, and so is the share of GPUs that waits."""
    plain = FAMILIES["standard"].generate(np.random.default_rng(2))
    problem = FAMILIES["standard"].generate(np.random.default_rng(2), parts_percent=40)
    count = len(problem.multipart_jobs)
    assert 0.3 < count / len(plain.jobs) < 0.5
    assert (len(problem.jobs), problem.counts_once.sum()) == (len(plain.jobs) + count, len(plain.jobs))
    readers = ~problem.counts_once
    assert (problem.need_mgpu[readers] == 0).all()
    gpus = (problem.need_mgpu.max(axis=1) // 1000 * problem.jobs.tasks)[np.flatnonzero(readers) - 1]
    assert (problem.jobs.tasks[readers] == np.ceil(gpus / 2)).all()
    assert np.array_equal(problem.jobs.value_milli[problem.counts_once], plain.jobs.value_milli)
    assert problem.reads.mb_per_day.sum() == plain.reads.mb_per_day.sum()
    assert problem_from_tables(*problem_to_tables(problem)) == problem
    assert FAMILIES["standard"].generate(np.random.default_rng(2), parts_percent=0) == plain


def test_only_the_lowest_tier_may_be_stopped() -> None:
    problem = FAMILIES["standard"].generate(np.random.default_rng(4))
    assert set(problem.running.tier[problem.running.preemptible].tolist()) == {len(problem.tiers) - 1}
    assert not problem.running.preemptible.all()


@pytest.mark.parametrize(("size", "words"), [({"servers": 0}, "at least 1"), ({"fill_percent": 101}, "at most 100")])
def test_sizes_that_cannot_be_are_refused(size: dict[str, int], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        FAMILIES["standard"].generate(np.random.default_rng(0), **size)
