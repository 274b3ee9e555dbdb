"""Parts of work that are too small to be moved, avoided by a program in which each part is zero or large enough."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mast_opt.core.arrays import FloatArray
from mast_opt.core.solve_result import SolveParams
from mast_opt.core.verdict import Verdict
from mast_opt.problems.backends.base import Backend
from mast_opt.problems.kind.formulation import Formulation
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.mip import Mip

FREE_COLUMNS = 20_000
"""Largest number of columns of a program that is built for it."""
LONGEST_S = 10.0
"""Most seconds of each of the two programs; the company of decision 0044 takes 0.1 to 0.7 s."""


def without_small_parts(
    kind: Kind[Any, PlanT],
    problem: Problem[PlanT],
    plan: PlanT,
    verdict: Verdict,
    backend: Backend,
    params: SolveParams,
    formulate: Callable[[], Formulation[PlanT]],
) -> PlanT:
    """The plan with its integer decisions and other shares, of which none is too small; the plan itself where it has no
    small parts, the program is large, or none is found.

    A first program, with continuous shares, decides which parts there are; a second one, with whole thousandths, how
    large they are. No term that is zero may grow in it.

    Args:
        formulate: builds the program of the plan, with continuous shares.
    """
    least_parts, size = kind.migration.least_parts, kind.formulation.size
    if least_parts is None or size is None or size(problem).columns > FREE_COLUMNS:
        return plan
    formulation = formulate()
    columns, least = least_parts(problem, plan, formulation.mip)
    if not len(columns) or formulation.exact is None:
        return plan
    left_s = params.time_limit_s
    params = replace(
        params, start=None, time_limit_s=LONGEST_S if left_s is None else max(min(LONGEST_S, left_s), 0.01)
    )
    mip = _held(formulation.mip, formulation.mip, formulation.encode(plan), verdict)
    found = backend.solve(mip.zero_or_at_least(columns, least), params)
    if found.x is None:
        return plan
    exact, used = formulation.exact(), found.x[columns] > least / 2
    x, unit = exact.encode(plan), exact.mip.col_upper[columns]
    low = np.where(used, np.ceil(least * unit), 0.0)
    mip = _held(exact.mip, formulation.mip, x, verdict)
    lower, upper = mip.col_lower.copy(), mip.col_upper.copy()
    lower[columns], upper[columns] = low, np.where(used, upper[columns], 0.0)
    settled = backend.solve(replace(mip, col_lower=lower, col_upper=upper), params)
    return plan if settled.x is None else exact.decode(settled.x)


def _held(mip: Mip, continuous: Mip, x: FloatArray, verdict: Verdict) -> Mip:
    """The program with the decisions that are integer with continuous shares, and the terms that are zero."""
    decided = np.flatnonzero(continuous.integral)
    mip = mip.fix(decided, np.rint(x[decided]))
    for term in mip.terms:
        if verdict.terms.get(term) == 0:
            mip = mip.limit_term(term, 0.0)
    return mip
