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
    ("data-placement", 135): "highs",
    ("data-placement", 225): "scip",
    ("data-placement", 240): "cpsat",
    ("data-placement", 270): "highs",
    ("server-assignment", 247): "cbc",
    ("server-assignment", 402): "cbc",
}
"""Case of seed 7 → a solver that was wrong; see ``docs/wrong-answers.md``."""
MOST_FAILED = 3
"""A solver's solution that misses a row is refused: no answer, and no wrong proof."""


def test_no_proof_is_wrong() -> None:
    report = run(500, 7, OPEN, tuple(DRAW))
    assert report.wrong == []
    assert report.enumerated > 400
    for solver in OPEN:
        assert report.counts[solver, FAILED] <= MOST_FAILED, report.failed
        assert report.counts[solver, PROVEN] > 350, "most are proven, so most of this is a test"


@pytest.mark.parametrize(("kind", "number"), FOUND)
def test_what_was_wrong_is_right(kind: str, number: int) -> None:
    report = Report()
    check(report, "kept", drawn(kind, 7 * 10**6 + number), [FOUND[kind, number]])
    assert report.wrong == []


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
