"""The JSON object that every command prints with ``--json``, and what each analysis adds to it."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fractions import Fraction

    from mast_opt.core.verdict import Verdict, Violation
    from mast_opt.planner.solving import Solution
    from mast_opt.problems.kind.current_state import CurrentState
    from mast_opt.problems.kind.kind import Kind
    from mast_opt.problems.kind.problem import Problem

if TYPE_CHECKING:
    from mast_opt.core.verdict import Verdict
    from mast_opt.planner.analysis.explain import Explanation
    from mast_opt.planner.analysis.joint_periods import JointPeriods
    from mast_opt.planner.analysis.marginal_values import Marginals
    from mast_opt.planner.analysis.pareto import Frontier
    from mast_opt.planner.analysis.periods import Periods
    from mast_opt.planner.analysis.purchases import Purchases
    from mast_opt.planner.analysis.two_stage import Robust
    from mast_opt.planner.analysis.whatif import Outcome, WhatIf
    from mast_opt.problems.kind.analysis_hooks import Loss, Risk
    from mast_opt.problems.search.params import Value


Record = dict[str, Any]

PHASES = ("read", "formulate", "solve", "verify", "compile")


def blank() -> Record:
    """Every key of the contract, nothing known yet."""
    return {
        "kind": None,
        "sense": None,
        "solver": None,
        "versions": {"mast-opt": version("mast-opt"), "python": platform.python_version()},
        "status": None,
        "objective": None,
        "bound": None,
        "gap": None,
        "runtime_s": dict.fromkeys(PHASES, 0.0),
        "terms": {},
        "metrics": {},
        "violations": [],
        "stages": [],
        "error": None,
    }


def solution_keys(solution: Solution[Any]) -> Record:
    """Keys of a solution; ``runtime_s`` is left to the caller, who also knows how long reading took."""
    verdict = {} if solution.verdict is None else verdict_keys(solution.verdict)
    return {
        "kind": solution.kind,
        "sense": solution.sense.value,
        "solver": solution.solver,
        "versions": dict(solution.versions),
        "status": solution.status.value,
        **verdict,
        "objective": solution.objective,
        "bound": solution.bound,
        "gap": solution.gap,
        "stages": [
            {"term": stage.term, "objective": stage.objective, "bound": stage.bound, "gap": stage.gap}
            for stage in solution.stages
        ],
        "seed": solution.seed,
        "overrides": solution.overrides.fields(),
        "params": _plain(solution.params),
        "strategy": _plain(solution.strategy),
        "limit": None if solution.limit is None else solution.limit.value,
        "message": solution.message,
        "conflicts": [conflict.message for conflict in solution.conflicts],
        "cross_check": None if solution.cross_check is None else solution.cross_check.fields(),
    }


def _plain(values: Mapping[str, Value]) -> Record:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def limit_keys(kind: Kind[Any, Any], problem: Problem[Any], plan: object) -> Record:
    """The limits on the whole plan: how much it has of each, and the most that it may have."""
    most: Mapping[str, Fraction] = getattr(problem, "limits", {})
    used = kind.verification.use_of_limits(problem, plan)
    return {
        name: {"used": float(used[name]), "most": float(value), "unit": kind.limits[name].unit}
        for name, value in most.items()
    }


def today_keys(state: CurrentState | None) -> Record | None:
    """Keys of the present state as the instance states it; None where its kind has none."""
    if state is None:
        return None
    return {
        "complete": state.complete,
        "known": {one.what: {"known": one.known, "of": one.of, "share": one.share} for one in state.known},
        "violations": [
            {"constraint": one.limit, "index": list(one.index), "message": one.message} for one in state.broken
        ],
        "notes": list(state.notes),
    }


def verdict_keys(verdict: Verdict) -> Record:
    """Keys of a verdict."""
    return {
        "objective": verdict.objective,
        "terms": dict(verdict.terms),
        "metrics": dict(verdict.metrics),
        "violations": [violation_keys(violation) for violation in verdict.violations],
    }


def violation_keys(violation: Violation) -> Record:
    """The JSON object of a violation."""
    return {
        "constraint": violation.constraint,
        "index": list(violation.index),
        "amount": violation.amount,
        "limit": violation.limit,
        "unit": violation.unit,
    }


def explanation_keys(answer: Explanation) -> Record:
    """The JSON object of ``explain``."""
    return {
        "kind": answer.kind,
        "status": None if answer.status is None else answer.status.value,
        "conflict": list(answer.conflict),
        "limits": None if answer.limits is None else {name: list(at) for name, at in answer.limits.items()},
        "minimal": answer.minimal,
        "proven": answer.proven,
        "conflicts": [
            {"constraint": one.constraint, "index": list(one.index), "message": one.message} for one in answer.seen
        ],
        "repairs": [
            {
                "changes": list(repair.changes),
                "exact": list(repair.exact),
                "price": repair.price,
                "cheapest": repair.cheapest,
            }
            for repair in answer.repairs
        ],
        "reasons": [
            {
                "name": one.name,
                "now": one.now,
                "sentence": one.sentence,
                "alternatives": [
                    {
                        "words": option.words,
                        "place": option.place,
                        "change": option.change,
                        "decides": option.decides,
                        "terms": dict(option.terms),
                        "parts": dict(option.parts),
                        "forbidden": list(option.forbidden),
                    }
                    for option in one.options
                ],
            }
            for one in answer.reasons
        ],
        "solves": answer.solves,
    }


def risk_keys(answer: Risk) -> Record:
    """The JSON object of ``risk``."""
    return {
        "risk": {
            "of": answer.of,
            "complete": answer.complete,
            "gpus": answer.gpus,
            "single_copies": [
                {
                    "dataset": one.dataset,
                    "region": one.region,
                    "tb": one.tb,
                    "workloads": list(one.work),
                    "gpus": one.gpus,
                }
                for one in answer.single_copies
            ],
            "regions": [
                {
                    "region": one.region,
                    "running_workloads": None if one.running is None else list(one.running),
                    "running_gpus": one.running_gpus,
                    **loss_keys(one.loss),
                    "lost_gpus": one.lost_gpus,
                }
                for one in answer.regions
            ],
        }
    }


def marginal_keys(answer: Marginals) -> Record:
    """The JSON object of ``marginal``."""
    return {
        "kind": answer.kind,
        "status": answer.status.value,
        "integers": answer.integers,
        "units": answer.units,
        "objective": answer.objective,
        "values": [
            {
                "resource": one.resource,
                "unit": one.unit,
                "place": one.place,
                "value": one.value,
                "low": one.low,
                "high": one.high,
                **({"usd": one.usd} if answer.usd_unit else {}),
            }
            for one in answer.values
        ],
        **({"usd_unit": answer.usd_unit} if answer.usd_unit else {}),
    }


def period_keys(answer: Periods[Any], together: JointPeriods[Any] | None = None) -> Record:
    """The JSON object of ``periods``."""
    joint = None if together is None else _joint_keys(answer, together)
    return {
        "kind": answer.kind,
        "complete": answer.complete,
        "moved": answer.moved,
        "periods": [
            {
                "name": one.name,
                "prepares": one.prepares,
                "moved": dict(one.moved),
                **{
                    key: value
                    for key, value in solution_keys(one.solution).items()
                    if key in ("status", "objective", "bound", "gap", "terms", "metrics")
                },
            }
            for one in answer.periods
        ],
        "joint": joint,
    }


def _joint_keys(answer: Periods[Any], together: JointPeriods[Any]) -> Record:
    return {
        "status": together.status.value,
        "objective": together.objective,
        "bound": together.bound,
        "gap": together.gap,
        "one_after_another": answer.objective,
        "periods": [
            {"name": one.name, "objective": one.solution.objective, "moved": dict(one.moved)}
            for one in together.periods
        ],
    }


def purchase_keys(answer: Purchases[Any]) -> Record:
    """The JSON object of ``buy``."""

    def number(value: Fraction | None) -> float | None:
        return None if value is None else float(value)

    return {
        "kind": answer.kind,
        "status": answer.status.value,
        "params": answer.params.values(),
        "target": float(answer.target),
        "budget_usd": number(answer.budget_usd),
        "usd": number(answer.usd),
        "bound_usd": answer.bound_usd,
        "least_usd": number(answer.least_usd),
        "least_proven": answer.least_proven,
        "worst_ratio_before": number(answer.worst_before),
        "worst_ratio": number(answer.worst_after),
        "purchases": [
            {
                "candidate": row.offer.name,
                "what": row.offer.what,
                "place": row.offer.place,
                "steps": row.steps,
                "amount": row.amount,
                "unit": row.offer.unit,
                "usd": float(row.usd),
                "lead_days": row.offer.lead_days,
            }
            for row in answer.bought
        ],
    }


def whatif_keys(answer: WhatIf[Any]) -> Record:
    """The JSON object of ``whatif``: that of the base's solution, and the scenarios."""
    return {
        **solution_keys(answer.base.solution),
        "base": _outcome(answer.base),
        "scenarios": [_outcome(one) for one in answer.outcomes],
        "robust": None if answer.robust is None else _robust(answer.robust),
    }


def _outcome(one: Outcome[Any]) -> dict[str, Any]:
    solution, verdict = one.solution, one.solution.verdict
    return {
        "name": one.name,
        "status": solution.status.value,
        "objective": solution.objective,
        "bound": solution.bound,
        "gap": solution.gap,
        "unavoidable": one.unavoidable,
        "open_gap": one.open_gap,
        "terms": {} if verdict is None else dict(verdict.terms),
        "metrics": {} if verdict is None else dict(verdict.metrics),
        "moved": dict(one.moved),
        **({} if one.lost is None else loss_keys(one.lost)),
        "message": solution.message,
        "base_plan": None
        if one.base_verdict is None
        else {
            "objective": _comparable(one, one.base_verdict),
            "terms": dict(one.base_verdict.terms),
            "violations": [violation_keys(violation) for violation in one.base_verdict.violations],
        },
    }


def loss_keys(lost: Loss) -> Record:
    """Keys of what a scenario destroys: ``lost_datasets``, ``lost_tb``, and ``lost_workloads`` or ``lost_jobs``."""
    return {"lost_datasets": list(lost.datasets), "lost_tb": lost.tb, f"lost_{lost.noun}s": list(lost.work)}


def _comparable(one: Outcome[Any], verdict: Verdict) -> float:
    """Value of the base plan in the new plan's objective: with a lexicographic one, the value of its term."""
    term = next((term for term in (one.solution.term, *one.problem.objective.order) if term), None)
    return verdict.objective if term is None else verdict.terms[term]


def _robust(robust: Robust[Any]) -> dict[str, Any]:
    return {
        "minimises": robust.objective_kind,
        "decided": robust.decided,
        "status": robust.status.value,
        "objective": robust.objective,
        "bound": robust.bound,
        "base_objective": robust.base_objective,
        "scenarios": {
            name: {
                "robust": robust.robust[name].objective if name in robust.robust else None,
                "base": solution.objective,
                "robust_lost": _keys_or_none(robust.robust_lost.get(name)),
                "base_lost": _keys_or_none(robust.base_lost.get(name)),
            }
            for name, solution in robust.base.items()
        },
    }


def _keys_or_none(lost: Loss | None) -> Record | None:
    return None if lost is None else loss_keys(lost)


def frontier_keys(answer: Frontier[Any]) -> Record:
    """The JSON object of ``pareto``."""
    return {
        "kind": answer.kind,
        "solver": answer.solver,
        "status": answer.status.value,
        "between": list(answer.terms),
        "method": answer.method,
        "points": [
            {
                "terms": dict(point.terms),
                "metrics": dict(point.metrics),
                "cap": point.cap,
                "bound": point.bound,
                "proven": point.proven,
            }
            for point in answer.points
        ],
        "dominated": answer.dominated,
        "missing": answer.missing,
    }
