"""``mast-opt marginal``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.interrupt import Interrupt
from mast_opt.cli.invocation import Answer, Console
from mast_opt.cli.json_record import marginal_keys
from mast_opt.cli.options import Force, Full, Instance, Json, SolveOptions, TheRun, Threads, at_least, flag, repeated
from mast_opt.cli.table_output import TableOut, answered, check_table_output
from mast_opt.core.solve_result import Status
from mast_opt.planner.analysis.marginal_values import DEFAULT_GAP, Marginals, marginal_values
from mast_opt.planner.io import read
from mast_opt.planner.solving.auto_strategy import DEFAULT_SOLVER


@dataclass(frozen=True)
class _Limits(SolveOptions):
    gap: Annotated[float, at_least(0, "Relative gap of the solve for a plan, and of each with --free.")] = DEFAULT_GAP
    threads: Annotated[int | None, Threads] = 1


def command(
    path: Instance,
    /,
    *,
    plan: Annotated[Path | None, Parameter(help="The plan to begin from; solved for unless given.")] = None,
    resource: Annotated[list[str] | None, repeated("storage, cpu, gpus, …: only these.")] = None,
    units: Annotated[int, at_least(1, "How many to add at once.")] = 1,
    free: Annotated[bool, flag("Decide everything again instead of fixing the plan's integer decisions.")] = False,
    solver: Annotated[str, Parameter(help="A MIP solver; with --free any solver of the kind.")] = DEFAULT_SOLVER,
    limits: _Limits = _Limits(),
    jobs: Annotated[int, at_least(1, "Solves at the same time.")] = 1,
    out: TableOut = None,
    force: Force = False,
    full: Full = False,
    json: Json = False,
    run: TheRun,
) -> Answer:
    """Compute what one more TB, core, GPU or TB a day is worth, region by region.

    Each value is the difference of two solves: the instance as it is, and with so many units more in one place. It is
    stated for one unit, in units of the objective. Without --free every integer decision of the plan is fixed and the
    linear program that is left is solved again: what the unit is worth to this plan. With --free everything is decided
    again: what it is really worth, within the bounds that were proven.

        mast-opt marginal my-instance --plan my-plan
        mast-opt marginal my-instance --free --resource storage --units 100 --jobs 4
        mast-opt marginal my-instance --plan my-plan --out values.csv
        mast-opt marginal my-instance --json | jq '.values[0]'
    """
    run.record["solver"] = solver
    check_table_output(out, force)
    with run.phase("read", f"reading {path}"):
        problem = read(path)
        run.record["kind"] = problem.kind
        begin = None if plan is None else run.plan_of(problem, plan).plan
    with Interrupt(run, "the values so far") as interrupt:
        run.compile(problem, solver, interrupt.cancel)
        with run.phase("solve", "adding one unit at a time"):
            answer = marginal_values(
                problem,
                begin,
                integers="free" if free else "fixed",
                units=units,
                resources=resource or (),
                solver=solver,
                jobs=jobs,
                **limits.keywords(interrupt.cancel),
            )
    run.record.update(marginal_keys(answer))
    from mast_opt.planner.report.result_sections import marginal_sections

    def show(console: Console) -> None:
        from mast_opt.planner.report.terminal.analysis import show_marginals

        show_marginals(console, problem.name, answer, full=full)

    ending = _ending(answer, interrupted=interrupt.happened)
    return answered(run, f"{problem.name}: marginal values", marginal_sections(answer), out, show, ending)


def _ending(answer: Marginals, *, interrupted: bool) -> tuple[Exit, str]:
    """Exit code and closing words of ``mast-opt marginal``."""
    if answer.status is Status.INFEASIBLE:
        return Exit.INFEASIBLE, "Proven infeasible: there is no plan to begin from; 'mast-opt explain' says why."
    if interrupted:
        return Exit.INTERRUPTED, "interrupted; the values so far are kept."
    if answer.status is Status.NO_SOLUTION:
        return Exit.NO_PLAN, "No plan was found or measured in time; raise --time-limit, or give one with --plan."
    return Exit.OK, ""
