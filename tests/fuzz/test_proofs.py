"""A fixed number of tiny instances, whose optimum every exact solver must not contradict."""

from __future__ import annotations

import pytest

import mast_opt
from mast_opt.core.solve_result import Status
from tests.fuzz.proof_cases import DRAW, drawn
from tests.fuzz.proofs import FAILED, PROVEN, Report, check, run
from tests.solvers import OPEN

pytestmark = pytest.mark.second_tier  # CBC is a process
FOUND = {
    ("data-placement", 7, 135): "highs",
    ("data-placement", 7, 225): "scip",
    ("data-placement", 7, 240): "cpsat",
    ("data-placement", 7, 270): "highs",
    ("data-placement", 100, 940): "cbc",
    ("data-placement", 301, 1035): "scip",
    ("data-placement", 301, 1485): "cbc",
    ("data-placement", 502, 805): "highs",
    ("job-placement", 301, 731): "highs",
    ("job-placement", 301, 1961): "highs",
    ("job-placement", 302, 1211): "cbc",
    ("job-placement", 503, 316): "highs",
    ("job-placement", 505, 386): "highs",
    ("job-placement", 508, 566): "highs",
    ("server-assignment", 7, 247): "cbc",
    ("server-assignment", 7, 402): "cbc",
    ("server-assignment", 200, 722): "cbc",
    ("server-assignment", 302, 452): "cbc",
    ("server-assignment", 302, 1387): "cbc",
    ("server-assignment", 401, 382): "highs",
    ("server-assignment", 401, 468): "highs",
    ("task-reassignment", 301, 348): "cbc",
    ("task-reassignment", 302, 523): "cbc",
    ("task-reassignment", 607, 393): "highs",
}
"""Kind, seed and case → a solver that was wrong; see ``docs/wrong-answers.md``."""
DENIED = {("task-reassignment", 100, 298), ("task-reassignment", 200, 698)}
"""Without a plan; CBC 2.10.3 says so and crashes."""
MOST_FAILED = 3
"""A solver's solution that misses a row is refused: no answer, and no wrong proof."""


def test_no_proof_is_wrong() -> None:
    report = run(500, 7, OPEN, tuple(DRAW))
    assert report.wrong == []
    assert report.enumerated > 400
    for solver in OPEN:
        assert report.counts[solver, FAILED] <= MOST_FAILED, report.failed
        assert all("BackendError: " in words or "VerificationError: " in words for words in report.failed)
        assert report.counts[solver, PROVEN] > 350, "most are proven, so most of this is a test"


@pytest.mark.parametrize(("kind", "seed", "number"), FOUND)
def test_what_was_wrong_is_right(kind: str, seed: int, number: int) -> None:
    report = Report()
    check(report, "kept", drawn(kind, seed * 10**6 + number), [FOUND[kind, seed, number]])
    assert report.wrong == []


@pytest.mark.parametrize(("kind", "seed", "number"), sorted(DENIED))
def test_what_cbc_denies_in_a_crash_is_infeasible(kind: str, seed: int, number: int) -> None:
    report = Report()
    check(report, "kept", drawn(kind, seed * 10**6 + number), ["cbc"])
    assert report.wrong == []
    assert report.counts["cbc", PROVEN] == 1


def test_drawn_cores_are_worth_a_countable_number_of_gpus() -> None:
    case = drawn("data-placement", 602 * 10**6 + 345)
    assert case.problem.demand_mgpu.sum() < 2**62


def test_a_wrong_proof_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that is content with a worse plan, or with none, is seen."""
    truly = mast_opt.solve
    case = next(case for case in (drawn("job-placement", seed) for seed in range(9)) if case.optimum and case.optimum())
    lies: list[dict[str, object]] = [
        {"objective": 1e9, "bound": 1e9},
        {"status": Status.INFEASIBLE, "plan": None, "objective": None},
    ]
    for lie in lies:

        def solve(problem: object, solver: str, lie: dict[str, object] = lie, **asked: object) -> object:
            found = truly(problem, solver, **asked)  # type: ignore[arg-type]
            for name, value in lie.items():
                object.__setattr__(found, name, value)
            return found

        monkeypatch.setattr(mast_opt, "solve", solve)
        report = Report()
        check(report, "a lie", case, ["highs"])
        assert len(report.wrong) == 1
