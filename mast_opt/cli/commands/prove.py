"""``mast-opt prove``."""

from fractions import Fraction
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mast_opt.cli.bound_check import close, first_bound, objective_meant
from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.invocation import Answer, Console
from mast_opt.cli.options import Json, TheRun, above, flag
from mast_opt.core.errors import InputError, UsageError
from mast_opt.core.solve_result import relative_gap
from mast_opt.core.wording import counted
from mast_opt.planner.io import read, read_certificate, read_plan_of
from mast_opt.planner.proof.certificate_prices import certificate_limits, certificate_prices, is_implied, program_of
from mast_opt.planner.proof.checker import Refused, check_folder
from mast_opt.planner.proof.write_proof import PROGRAM, PROOF, Proven, check_new, write_proof
from mast_opt.planner.solving import verify
from mast_opt.problems.resource_allocation.verification.price_bound import policy_bound

MOST_LEAVES = 20_000
"""Linear programs that one proof combines at most."""
WHOLE = 1e-9
"""Part of a stated bound that a proof may lack and still prove it."""


def command(
    path: Annotated[Path, Parameter(help="The instance; with --check the folder of the proof.")],
    plan: Annotated[Path | None, Parameter(help="The plan: what 'mast-opt solve --out' wrote.")] = None,
    /,
    *,
    out: Annotated[Path | None, Parameter(help="The folder to write, which must not exist.")] = None,
    time_limit: Annotated[
        float, above(0.0, "Seconds for rounded rows and splits, after the relaxation has been solved.")
    ] = 60.0,
    check: Annotated[bool, flag("Check a proof instead of writing one.")] = False,
    json: Json = False,
    run: TheRun,
) -> Answer:
    """Write a proof of a plan's bound that the checkers of others accept, or check one.

    The folder gets proof.mps, the program with the plan's weights in exact decimals, and proof.vipr, which states the
    program, the plan as its solution, and every step of a proof of the bound in rational numbers: the prices, cuts and
    peaks of a heuristic's certificate, rounded rows, the duals of linear programs, and splits of integer columns until
    the stated bound is reached or the time is up. What the proof leaves of the stated bound is said. With a
    lexicographic objective the proof is of its first term.

    With --check, the proof in a folder is checked in fractions, and so is that it is about the program in proof.mps:
    exit code 0 if it is accepted, 5 if not. The reference checker of the VIPR project, viprchk, reads proof.vipr too.

        mast-opt prove my-instance my-plan --out my-proof
        mast-opt prove --check my-proof
        viprchk my-proof/proof.vipr
    """
    if check:
        if plan is not None or out is not None:
            raise UsageError("--check takes the folder of a proof and nothing else")
        return _checked(path, run)
    if plan is None or out is None:
        raise UsageError("expected an instance, a plan and --out FOLDER, or --check FOLDER")
    check_new(out)
    with run.phase("read", f"reading {path}"):
        reading = read_plan_of(read(path), plan)
        problem = reading.problem
        run.record["kind"] = problem.kind
    with run.phase("verify", "checking"):
        verdict = verify(problem, reading.plan)
    if not verdict.ok:
        raise InputError(f"{plan} breaks limits; 'mast-opt verify' lists them")
    with run.phase("formulate", "formulating"):
        arrays = read_certificate(plan) if plan.is_dir() else None
        mip, x = program_of(problem, reading.plan, arrays)
    stated, objective = first_bound(reading.fields, problem.objective.order), None
    if close(mip.objective(x), problem.sense.minimised(objective_meant(problem, verdict, reading.fields))):
        objective = objective_meant(problem, verdict, reading.fields)
    elif not is_implied(problem):
        stated = None
    target = None if stated is None or objective is None else problem.sense.minimised(stated)
    with run.phase("solve", "proving"):
        found = write_proof(
            mip,
            x,
            target,
            out,
            time_limit_s=time_limit,
            most_leaves=MOST_LEAVES,
            rows_of=certificate_limits(problem, arrays),
            prices=certificate_prices(problem, arrays, mip),
        )
    bound = None if found.bound is None else float(found.bound)
    proven = None if bound is None or objective is None else problem.sense.minimised(bound)
    if is_implied(problem) and arrays is not None and bound is not None:
        proven = policy_bound(problem, arrays["rate_weight"], -bound)
        objective = objective_meant(problem, verdict, reading.fields)
    missing = None
    if stated is not None and proven is not None:
        missing = max(0.0, problem.sense.minimised(stated - proven) / max(abs(stated), 1e-9))
    run.record.update(
        objective=objective,
        bound=proven,
        gap=relative_gap(objective, proven, problem.sense),
        sense=problem.sense.value,
        out=str(out),
        stated_bound=stated,
        missing=missing,
        program_bound=_text(found.bound),
        program_objective=_text(found.objective),
        leaves=found.leaves,
    )

    def show(console: Console) -> None:
        console.print("\n".join(_words(found, out, stated, missing, implied=is_implied(problem))), soft_wrap=True)

    return Answer(Exit.OK, show)


def _text(value: Fraction | None) -> str | None:
    """A rational number as text, so that JSON rounds nothing."""
    return None if value is None else str(value)


def _words(found: Proven, out: Path, stated: float | None, missing: float | None, *, implied: bool) -> list[str]:
    """The lines that say how much was proven."""
    rates = "" if not implied else " of −Σ weight · rate"
    lines = [f"{out} holds {PROGRAM} and {PROOF}, a proof made of {counted(found.leaves, 'linear program')}."]
    if found.bound is None:
        lines.append("It proves no bound: a column without a limit stands in the way.")
    else:
        lines.append(f"It proves that no plan has a value below {float(found.bound):.9g}{rates} in the program.")
    if found.objective is None:
        lines.append("It states no plan: no solution that keeps every limit exactly was found near it.")
    else:
        lines.append(f"The plan in it has the value {float(found.objective):.9g}.")
    if missing is not None:
        if implied:
            lines.append(
                "The policy's bound follows by a formula that is not linear, so no step states it; verify computes it."
            )
        rest = "all" if missing <= WHOLE else f"all but {missing:.3%}"
        lines.append(f"That is {rest} of the bound {stated:g} that plan.toml states.")
    elif found.bound is not None:
        lines.append("plan.toml states no bound on that value, so nothing is compared with it.")
    return lines


def _checked(folder: Path, run: TheRun) -> Answer:
    """The verdict of our own checker."""
    with run.phase("verify", f"checking {folder}"):
        try:
            accepted = check_folder(folder)
        except Refused as refused:
            run.record["error"] = words = f"the proof in {folder} is refused: {refused}"
            return Answer(Exit.VIOLATIONS, lambda console: console.print(words, soft_wrap=True))
    run.record.update(program_bound=_text(accepted.bound), program_objective=_text(accepted.objective))
    words = f"The proof in {folder} is accepted: {accepted.bound} ≤ minimum ≤ {accepted.objective}."
    return Answer(Exit.OK, lambda console: console.print(words, soft_wrap=True))
