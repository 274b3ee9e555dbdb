"""The JSON object that every command prints with ``--json``, and what each analysis adds to it."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict
from datetime import date
from enum import Enum
from fractions import Fraction
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from mast_opt.core.dates import date_of

if TYPE_CHECKING:
    from mast_opt.core.verdict import Verdict, Violation
    from mast_opt.planner.analysis.explain import Explanation
    from mast_opt.planner.analysis.goals import Goals
    from mast_opt.planner.analysis.joint_periods import JointPeriods
    from mast_opt.planner.analysis.marginal_values import Marginals
    from mast_opt.planner.analysis.pareto import Frontier
    from mast_opt.planner.analysis.periods import Period, Periods
    from mast_opt.planner.analysis.purchase_question import Purchase, Purchases
    from mast_opt.planner.analysis.purchases_in_time import PurchasesInTime
    from mast_opt.planner.analysis.two_stage import Robust
    from mast_opt.planner.analysis.whatif import Outcome, WhatIf
    from mast_opt.planner.solving import Solution
    from mast_opt.problems.kind.analysis_hooks import Loss, Risk
    from mast_opt.problems.kind.current_state import CurrentState
    from mast_opt.problems.kind.kind import Kind
    from mast_opt.problems.kind.problem import Problem


Record = dict[str, Any]

PHASES = ("read", "formulate", "solve", "verify", "compile")


def blank() -> Record:
    """Every key of a command's JSON record, nothing known yet."""
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
        **_attributes(solution, "kind", "sense", "solver", "versions", "status"),
        **verdict,
        **_attributes(solution, "objective", "bound", "gap", "least_missing_gpus", "is_second_stage"),
        "stages": [_attributes(stage, "term", "objective", "bound", "gap") for stage in solution.stages],
        "seed": solution.seed,
        "overrides": solution.overrides.fields(),
        **_attributes(solution, "params", "strategy", "limit", "message"),
        "conflicts": [conflict.message for conflict in solution.conflicts],
        "cross_check": None if solution.cross_check is None else solution.cross_check.fields(),
        "last_pass": None if solution.last_pass is None else asdict(solution.last_pass),
        "reuse": None if solution.reuse is None else solution.reuse.fields(),
    }


def _attributes(source: object, *names: str) -> Record:
    """Attributes of an answer under their own names, as JSON states them."""
    return {name: _plain(getattr(source, name)) for name in names}


def _plain(value: object) -> object:
    """The value as JSON states it: enumerations by value, fractions as numbers, mappings and sequences item by item."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


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
        "violations": [{"constraint": one.limit, **_attributes(one, "index", "message")} for one in state.broken],
        "notes": list(state.notes),
    }


def verdict_keys(verdict: Verdict) -> Record:
    """Keys of a verdict."""
    return {
        **_attributes(verdict, "objective", "terms", "metrics"),
        "violations": [violation_keys(violation) for violation in verdict.violations],
    }


def violation_keys(violation: Violation) -> Record:
    """The JSON object of a violation."""
    return _attributes(violation, "constraint", "index", "amount", "limit", "unit")


def explanation_keys(answer: Explanation) -> Record:
    """The JSON object of ``explain``."""
    option = ("words", "place", "change", "decides", "terms", "parts", "forbidden")
    return {
        **_attributes(answer, "kind", "status", "conflict", "limits", "minimal", "proven", "at_least"),
        "conflicts": [_attributes(one, "constraint", "index", "message") for one in answer.seen],
        "repairs": [_attributes(repair, "changes", "exact", "price", "cheapest") for repair in answer.repairs],
        "reasons": [
            {
                **_attributes(one, "name", "now", "sentence"),
                "alternatives": [_attributes(each, *option) for each in one.options],
            }
            for one in answer.reasons
        ],
        "solves": answer.solves,
    }


def risk_keys(answer: Risk) -> Record:
    """The JSON object of ``risk``."""
    return {
        "risk": {
            **_attributes(answer, "of", "complete", "gpus"),
            "single_copies": [
                {**_attributes(one, "dataset", "region", "tb"), "workloads": list(one.work), "gpus": one.gpus}
                for one in answer.single_copies
            ],
            "regions": [
                {
                    "region": one.region,
                    "running_workloads": None if one.running is None else list(one.running),
                    "running_gpus": one.running_gpus,
                    **loss_keys(one.loss),
                }
                for one in answer.regions
            ],
        }
    }


def marginal_keys(answer: Marginals) -> Record:
    """The JSON object of ``marginal``."""
    usd = ("usd",) if answer.usd_unit else ()
    return {
        **_attributes(answer, "kind", "status", "integers", "units", "objective"),
        "values": [
            _attributes(one, "resource", "unit", "place", "value", "low", "high", *usd) for one in answer.values
        ],
        **({"usd_unit": answer.usd_unit} if answer.usd_unit else {}),
    }


def period_keys(answer: Periods[Any], together: JointPeriods[Any] | None = None, begin: date | None = None) -> Record:
    """The JSON object of ``periods``."""
    joint = None if together is None else _joint_keys(answer, together)
    return {
        **_attributes(answer, "kind", "complete", "moved"),
        "periods": [_period(one, begin) for one in answer.periods],
        "joint": joint,
    }


def _period(one: Period[Any], begin: date | None) -> Record:
    """JSON of a period and its plan."""
    known: Record = {"terms": {}, "metrics": {}} | solution_keys(one.solution)
    return {
        **_attributes(one, "name", "begins_day", "prepares", "moved"),
        **_attributes(one.way, "days", "days_over"),
        "begins_date": date_of(begin, one.begins_day),
        **_attributes(one, "over_before_gpus", "moves_until_day"),
        "moves_until_date": date_of(begin, one.moves_until_day),
        "stopped": [asdict(row) for row in one.way.stopped],
        **{key: known[key] for key in ("status", "objective", "bound", "gap", "terms", "metrics")},
    }


def _joint_keys(answer: Periods[Any], together: JointPeriods[Any]) -> Record:
    """JSON of periods that are planned together, next to those one after another."""
    return {
        **_attributes(together, "status", "objective", "bound", "gap"),
        "one_after_another": answer.objective,
        "periods": [
            {"name": one.name, "objective": one.solution.objective, "moved": dict(one.moved)}
            for one in together.periods
        ],
    }


def purchase_keys(answer: Purchases[Any]) -> Record:
    """The JSON object of ``buy``."""
    return {
        **_attributes(answer, "kind", "status"),
        "params": answer.params.values(),
        **_attributes(answer, "target", "budget_usd", "usd", "bound_usd", "least_usd", "least_proven"),
        "worst_ratio_before": _plain(answer.worst_before),
        "worst_ratio": _plain(answer.worst_after),
        "purchases": [_purchase(row) for row in answer.bought],
        "usd_a_month": asdict(answer.bill),
    }


def _purchase(row: Purchase) -> Record:
    """JSON of a purchase."""
    return {
        "candidate": row.offer.name,
        **_attributes(row.offer, "what", "place"),
        **_attributes(row, "steps", "amount"),
        "unit": row.offer.unit,
        "usd": float(row.usd),
        "lead_days": row.offer.lead_days,
    }


def order_date_keys(answer: PurchasesInTime[Any], begin: date | None = None) -> Record:
    """The JSON object of ``buy --periods``."""
    return {
        **_attributes(answer, "kind", "status", "usd", "bound_usd", "message"),
        "periods": [
            {
                **_period(one.planned, begin),
                "worst_ratio": float(one.worst_after),
                "from_today": one.from_today or None,
                "usd_a_month": {"after": one.bill.after, "bought": one.bill.bought},
                "purchases": [
                    {
                        **_purchase(row),
                        "order_day": day,
                        "order_date": date_of(begin, day),
                        "early_order_day": early,
                        "early_order_date": date_of(begin, early),
                    }
                    for row in one.bought
                    for day, early in ((one.order_day(row), one.early_order_day(row)),)
                ],
            }
            for one in answer.periods
        ],
    }


def whatif_keys(answer: WhatIf[Any]) -> Record:
    """The JSON object of ``whatif``: that of the base's solution, and the scenarios."""
    return {
        **solution_keys(answer.base.solution),
        "base": {**_outcome(answer.base), "given": answer.given},
        "scenarios": [_outcome(one) for one in answer.outcomes],
        "robust": None if answer.robust is None else _robust(answer.robust),
    }


def _outcome(one: Outcome[Any]) -> dict[str, Any]:
    """JSON of the outcome of a scenario."""
    solution, verdict = one.solution, one.solution.verdict
    return {
        "name": one.name,
        **_attributes(solution, "status", "objective", "bound", "gap"),
        **_attributes(one, "unavoidable", "open_gap"),
        "terms": {} if verdict is None else dict(verdict.terms),
        "metrics": {} if verdict is None else dict(verdict.metrics),
        "moved": dict(one.moved),
        **_attributes(one.way, "days", "days_over"),
        **({} if one.lost is None else loss_keys(one.lost)),
        "lost_work": [] if one.order is None else [asdict(row) for row in one.order.stopped if row.lost is not None],
        "waiting": [[asdict(row) for row in rows] for rows in one.waiting],
        "region_loss": None if one.after_loss is None else one.after_loss.keys(),
        "message": solution.message,
        "base_plan": None
        if one.base_verdict is None
        else {
            "objective": _comparable(one, one.base_verdict),
            "terms": dict(one.base_verdict.terms),
            "breaks": one.base_breaks,
            "violations": [violation_keys(violation) for violation in one.base_verdict.violations],
        },
    }


def loss_keys(lost: Loss) -> Record:
    """Keys of what a scenario destroys: ``lost_datasets``, ``lost_tb``, ``lost_workloads`` or ``lost_jobs``,
    ``lost_gpus`` and ``fewer_copies``."""
    gone = {"lost_datasets": list(lost.datasets), "lost_tb": lost.tb, f"lost_{lost.noun}s": list(lost.work)}
    return {**gone, "lost_gpus": lost.gpus, "fewer_copies": list(lost.fewer_copies)}


def _comparable(one: Outcome[Any], verdict: Verdict) -> float:
    """Value of the base plan in the new plan's objective: with a lexicographic one, the value of its term."""
    term = next((term for term in (one.solution.term, *one.problem.objective.order) if term), None)
    return verdict.objective if term is None else verdict.terms[term]


def _robust(robust: Robust[Any]) -> dict[str, Any]:
    """JSON of a robust plan."""
    return {
        "minimises": robust.objective_kind,
        **_attributes(robust, "decided", "status", "objective", "bound", "base_objective"),
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
    """JSON of what a scenario destroys; None where that is nothing."""
    return None if lost is None else loss_keys(lost)


def goal_keys(answer: Goals[Any]) -> Record:
    """The JSON object of ``solve --goals``: each state with its figures, each goal with its proof."""
    stated = ("status", "objective", "bound", "gap", "least_missing_gpus", "is_second_stage")
    proof = {name: _attributes(one, *stated) for name, one in answer.solutions.items()}
    return {
        "kind": answer.kind,
        "lead": answer.lead,
        "refused": dict(answer.refused),
        "goals": {
            name: {
                **verdict_keys(one.verdict),
                **proof.get(name, {}),
                **_attributes(one.way, "steps", "days", "stuck", "usd"),
                "worst_region_loss": None if one.loss is None else one.loss.keys(),
            }
            for name, one in answer.figures.items()
        },
    }


def frontier_keys(answer: Frontier[Any]) -> Record:
    """The JSON object of ``pareto``."""
    point = ("terms", "metrics", "cap", "bound", "proven")
    return {
        **_attributes(answer, "kind", "solver", "status"),
        "between": list(answer.terms),
        "method": answer.method,
        "points": [_attributes(one, *point) for one in answer.points],
        **_attributes(answer, "dominated", "missing"),
    }
