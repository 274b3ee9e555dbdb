"""Compares what exact solvers prove of tiny instances with enumeration, and with one another.

    python -m tests.fuzz.proofs --cases 10000 --seed 7
    python -m tests.fuzz.proofs --kind data-placement --case 4711

A case is wrong where a solver calls a plan OPTIMAL although there is a better one, states a bound that a plan
contradicts, or calls an instance INFEASIBLE that has a plan. What a solver does not prove is counted and is no fault.
The exit code is 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import mast_opt
from mast_opt.core.errors import SizeLimitExceeded, UnsupportedOption
from mast_opt.core.solve_result import Status
from mast_opt.planner.solving import Solution
from tests.fuzz.proof_cases import DRAW, Case, drawn
from tests.solvers import HERE

RELATIVE = 1e-5
ABSOLUTE = 1e-6
"""Differences that tolerances of solvers explain."""
PROVEN, UNPROVEN, REFUSED, FAILED, WRONG = "proven", "unproven", "refused", "failed", "wrong"


@dataclass
class Report:
    """Counts by (solver, outcome), and the words on everything that is wrong or failed."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    cases: int = 0
    enumerated: int = 0


def answers(case: Case, solvers: Sequence[str]) -> Iterator[tuple[str, Solution[Any] | Exception]]:
    """What each solver says of the case; a solver that refuses the kind of program is left to the caller."""
    for solver in solvers:
        try:
            yield solver, mast_opt.solve(case.problem, solver, gap=0.0, threads=1, time_limit_s=20.0)
        except Exception as error:  # any other is a fault of ours; it is reported with the case, after all the others
            yield solver, error


def check(report: Report, name: str, case: Case, solvers: Sequence[str]) -> None:
    """Solve a case with every solver and put what each proves into the report."""
    found = dict(answers(case, solvers))
    sign = case.problem.sense.minimised(1.0)
    values = [sign * s.objective for s in found.values() if isinstance(s, Solution) and s.objective is not None]
    exact = case.optimum() if case.optimum is not None else None
    known = case.optimum is not None
    best = min([*values, *([] if exact is None else [sign * exact])], default=None)
    report.cases += 1
    report.enumerated += known
    if known and best is not None and (exact is None or _less(best, sign * exact)):
        report.wrong.append(f"{name}: enumeration says {exact}, and a verified plan is worth {sign * best}")
    for solver, answer in found.items():
        outcome = FAILED
        if isinstance(answer, (UnsupportedOption, SizeLimitExceeded)):
            outcome = REFUSED
        elif isinstance(answer, Exception):
            report.failed.append(f"{name} {solver}: {type(answer).__name__}: {answer}"[:300])
        else:
            outcome = PROVEN if answer.status in (Status.OPTIMAL, Status.INFEASIBLE) else UNPROVEN
            fault = _fault(answer, sign, best)
            if fault is not None:
                outcome = WRONG
                report.wrong.append(f"{name} {solver}: {fault}; the best is {best if best is None else sign * best}")
        report.counts[solver, outcome] += 1


def _fault(answer: Solution[Any], sign: float, best: float | None) -> str | None:
    if best is None:
        return None
    if answer.status.is_infeasible:
        return f"{answer.status.value} ({answer.message[:80]})"
    if answer.bound is not None and _less(best, sign * answer.bound):
        return f"bound {answer.bound!r} of {answer.status.value} {answer.objective!r}"
    if answer.status is Status.OPTIMAL and answer.objective is not None and _less(best, sign * answer.objective):
        return f"OPTIMAL {answer.objective!r} with bound {answer.bound!r}"
    return None


def _less(one: float, other: float) -> bool:
    """Whether ``one`` is less by more than tolerances explain."""
    return other - one > ABSOLUTE + RELATIVE * max(abs(one), abs(other))


def run(cases: int, seed: int, solvers: Sequence[str], kinds: Sequence[str], only: int | None = None) -> Report:
    """So many cases, of the kinds in turn."""
    report = Report()
    for number in range(cases) if only is None else [only]:
        kind = kinds[number % len(kinds)]
        check(report, f"{kind} --seed {seed} --case {number}", drawn(kind, seed * 10**6 + number), solvers)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--case", type=int, help="this one alone; name its --kind too")
    parser.add_argument("--kind", choices=tuple(DRAW), action="append")
    parser.add_argument("--solvers", default=",".join(HERE), help="comma-separated")
    arguments = parser.parse_args()
    solvers = arguments.solvers.split(",")
    report = run(arguments.cases, arguments.seed, solvers, arguments.kind or tuple(DRAW), arguments.case)
    for line in (*report.failed, *report.wrong):
        print(line)
    print(f"{report.cases} cases, {report.enumerated} of them enumerated, {len(report.wrong)} wrong")
    for solver in solvers:
        words = [f"{report.counts[solver, what]} {what}" for what in (PROVEN, UNPROVEN, REFUSED, FAILED, WRONG)]
        print(f"{solver}: {', '.join(words)}")
    return 1 if report.wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
