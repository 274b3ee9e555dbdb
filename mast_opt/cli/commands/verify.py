"""``mast-opt verify``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from mast_opt.cli.bound_check import check_bound, number_in, objective_meant, text_in, wrong_claims
from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.invocation import Answer, Console
from mast_opt.cli.json_record import limit_keys, verdict_keys, violation_keys
from mast_opt.cli.options import Full, Instance, Json, TheRun
from mast_opt.core.solve_result import Status, relative_gap
from mast_opt.core.wording import counted
from mast_opt.planner.io import read, read_certificate, read_plan_of
from mast_opt.planner.solving import verify
from mast_opt.problems.registry import kind_of


def _figures(fields: Mapping[str, Any], bound_checked: bool | None) -> str:
    """Words on the figures that ``plan.toml`` states, where none is wrong."""
    stated = ", the stated objective is right" if fields.get("objective") is not None else ""
    if bound_checked is None:
        return stated
    if bound_checked:
        return ", every stated figure is right" if stated else ", the stated bound is proven"
    return f"{stated}; the stated bound is not checked"


def command(
    path: Instance,
    /,
    plan: Annotated[Path, Parameter(help="The plan: what 'mast-opt solve --out' wrote, or tables of your own.")],
    *,
    full: Full = False,
    json: Json = False,
    run: TheRun,
) -> Answer:
    """Check a plan against its instance, without any solver's help.

    Every hard limit is checked in exact integers, and the objective is recomputed from the plan alone; where
    plan.toml states an objective and a bound, these must agree, and a plan that it calls OPTIMAL must have no change
    of one configuration that is better at a later level. Where the plan's folder has a certificate.npz, the
    bound is computed again from it and must reach the stated one; task reassignment computes a bound from the
    instance alone. Any other bound, such as that of an exact solver, is reported as not checked
    ("bound_checked": false with --json, where "gap" is then what the stated bound would leave). Exit code 0 if all is
    well, 5 if not. Where plan.toml states weights or an order that the plan was solved with instead of the instance's,
    objective and bound are checked by these.

        mast-opt verify my-instance my-plan
        mast-opt verify my-instance my-plan --json | jq .violations
    """
    with run.phase("read", f"reading {path}"):
        problem = read(path)
        run.record["kind"] = problem.kind
        reading = read_plan_of(problem, plan)
        arrays = read_certificate(plan)
        problem = reading.problem
    with run.phase("verify", "checking"):
        verdict = verify(problem, reading.plan)
        proof = check_bound(problem, verdict, reading.fields, arrays)
    claims = wrong_claims(problem, reading.plan, verdict, reading.fields) + list(proof.wrong)
    solved_with = [f"the plan was solved with {reading.overrides}"] if reading.overrides else []
    notes = [*([reading.foreign] if reading.foreign else ()), *solved_with, *proof.notes]
    bound = number_in(reading.fields, "bound")
    objective = objective_meant(problem, verdict, reading.fields)
    run.record.update(
        verdict_keys(verdict),
        objective=objective,
        solver=text_in(reading.fields, "solver"),
        bound=bound,
        gap=relative_gap(objective, bound, problem.sense),
        sense=problem.sense.value,
        certified_bound=proof.bound,
        bound_checked=proof.checked,
        same_instance=reading.same_instance,
        overrides=reading.overrides.fields(),
        limits=limit_keys(kind_of(problem), problem, reading.plan),
        notes=notes,
    )
    run.record["violations"] += [violation_keys(claim) for claim in claims]
    found = len(run.record["violations"])
    run.record["status"] = None if found else Status.FEASIBLE.value
    if found:
        words = (reading.foreign, f"the plan has {counted(found, 'violation')}", *proof.faults)
        run.record["error"] = "; ".join(filter(None, words))

    def show(out: Console) -> None:
        from mast_opt.planner.report.terminal.validation import show_verdict

        right = _figures(reading.fields, proof.checked)
        show_verdict(out, problem, verdict, claims, notes, right=right, full=full)

    return Answer(Exit.VIOLATIONS if found else Exit.OK, show)
