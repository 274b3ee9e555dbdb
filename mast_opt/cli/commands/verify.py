"""``mast-opt verify``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from mast_opt.cli.claims import check_certificate, number_in, objective_meant, text_in, wrong_claims
from mast_opt.cli.exits import Exit
from mast_opt.cli.options import Full, Instance, Json, TheRun
from mast_opt.cli.record import verdict_keys, violation_keys
from mast_opt.cli.run import Answer
from mast_opt.io import read, read_certificate, read_plan_of
from mast_opt.result import Status, relative_gap
from mast_opt.solving import verify
from mast_opt.words import counted

if TYPE_CHECKING:
    from rich.console import Console


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
    plan.toml states an objective and a bound, these must agree. A certificate.npz beside the plan must prove that
    bound: it is computed afresh from the certificate's prices. Exit code 0 if all is well, 5 if not.

        mast-opt verify my-instance my-plan
        mast-opt verify my-instance my-plan --json | jq .violations
    """
    with run.phase("read", f"reading {path}"):
        problem = read(path)
        run.record["kind"] = problem.kind
        reading = read_plan_of(problem, plan)
        arrays = read_certificate(plan)
    with run.phase("verify", "checking"):
        verdict = verify(problem, reading.plan)
        proof = check_certificate(problem, verdict, reading.fields, arrays)
    claims = wrong_claims(problem, verdict, reading.fields) + list(proof.wrong)
    notes = [*([reading.foreign] if reading.foreign else ()), *proof.notes]
    bound = number_in(reading.fields, "bound")
    objective = objective_meant(problem, verdict, reading.fields)
    run.record.update(
        verdict_keys(verdict),
        objective=objective,
        solver=text_in(reading.fields, "solver"),
        bound=bound,
        gap=relative_gap(objective, bound),
        certified_bound=proof.bound,
        same_instance=reading.same_instance,
        notes=notes,
    )
    run.record["violations"] += [violation_keys(claim) for claim in claims]
    found = len(run.record["violations"])
    run.record["status"] = None if found else Status.FEASIBLE.value
    if found:
        words = (reading.foreign, f"the plan has {counted(found, 'violation')}", *proof.faults)
        run.record["error"] = "; ".join(filter(None, words))

    def show(out: Console) -> None:
        from mast_opt.report.validation import show_verdict

        show_verdict(out, problem, verdict, claims, notes, full=full)

    return Answer(Exit.VIOLATIONS if found else Exit.OK, show)
