"""``mast-opt periods``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from mast_opt.cli.commands.solve import exit_for
from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.interrupt import Interrupt
from mast_opt.cli.invocation import Answer, Console
from mast_opt.cli.json_record import period_keys
from mast_opt.cli.options import Begin, Force, Instance, Json, SolveOptions, Strict, TheRun, flag
from mast_opt.cli.table_output import TableOut, answered, check_table_output
from mast_opt.core.errors import UsageError
from mast_opt.core.wording import percent
from mast_opt.planner.analysis.common import exact_solver
from mast_opt.planner.analysis.joint_periods import JointPeriods, plan_periods_jointly
from mast_opt.planner.analysis.periods import Period, Periods, plan_periods
from mast_opt.planner.analysis.scenario_files import check_scenarios, read_periods, scenario_warnings
from mast_opt.planner.io import validate, write, write_plan
from mast_opt.planner.solving.auto_strategy import DEFAULT_SOLVER
from mast_opt.problems.kind.problem import Problem


def command(
    path: Instance,
    /,
    *,
    periods: Annotated[Path, Parameter(help="A TOML file with a table [[period]] for each, in order.")],
    solver: Annotated[str, Parameter(help="A solver that 'mast-opt backends' lists.")] = DEFAULT_SOLVER,
    limits: SolveOptions = SolveOptions(),
    joint: Annotated[
        bool,
        flag("Also plan all periods in one program, for small instances and a MIP solver, and state what that gains."),
    ] = False,
    begin: Begin = None,
    plans: Annotated[
        Path | None, Parameter(help="Write the instance and the plan of each period to this new folder.")
    ] = None,
    out: TableOut = None,
    force: Force = False,
    strict: Strict = False,
    json: Json = False,
    run: TheRun,
) -> Answer:
    """Plan several periods: demand grows by tier, hardware arrives, each plan begins where the last one ends.

    A period has the keys of a scenario of 'mast-opt whatif', and changes stay. Its present state is the plan of the
    period before, so what moves between periods is counted, and limits on copies hold in each. Where a period has no
    plan because what it needs cannot be brought in time, the period before is planned again to have it ready.

        [[period]]
        name = "2027-Q1"
        days = 30
        grow_demand = { 0 = 1.1, 1 = 1.2 }

        [[period]]
        name = "2027-Q2"
        grow_demand = { all = 1.1 }
        add_gpus = [{ region = "us-east", gpu_type = "H100", gpus = 64 }]

    Then:

        mast-opt periods my-instance --periods growth.toml --out periods.xlsx
        mast-opt periods my-instance --periods growth.toml --solver tetris --time-limit 60 --plans plans-2027
        mast-opt periods my-instance --periods growth.toml --joint --plans plans-2027

    With --joint, --plans gets the plans of the program over all periods.
    """
    run.record["solver"] = solver
    check_table_output(out, force)
    check_new_folder("--plans", plans)
    with run.phase("read", f"reading {path}"):
        reading = validate(path)
        problem = reading.problem
        run.record["kind"] = problem.kind
        if joint:
            exact_solver(reading.kind, solver)
        described = read_periods(periods)
        check_scenarios(reading.kind, described)
        run.warn([*reading.warnings, *scenario_warnings(reading.kind, described, periods.name)], strict=strict)
    with Interrupt(run, "the periods so far") as interrupt:
        run.compile(problem, solver, interrupt.cancel)
        with run.phase("solve", f"planning {len(described)} periods"):
            answer = plan_periods(
                problem,
                described,
                solver=solver,
                on_period=lambda one: run.say(
                    f"planned: {one.name}, {one.solution.outcome}, gap {percent(one.solution.gap)}"
                ),
                **limits.keywords(interrupt.cancel),
            )
            together = None
            if joint and not interrupt.happened:
                together = plan_periods_jointly(
                    problem, described, start=answer, solver=solver, **limits.keywords(interrupt.cancel)
                )
    run.record.update(period_keys(answer, together, begin))
    found = answer.periods if together is None or not together.periods else together.periods
    fields = {"solver": solver, "seed": limits.seed}
    where = write_numbered(
        [(one.instance, one.solution.plan, {**fields, **_proven(one)}) for one in found],
        plans,
    )
    run.record["plans"] = None if plans is None else str(plans)
    from mast_opt.planner.report.result_sections import joint_sections, period_sections

    sections = (*period_sections(answer, begin), *(() if together is None else joint_sections(answer, together)))

    def show(console: Console) -> None:
        from mast_opt.planner.report.terminal.sections import show_section

        for section in sections:
            show_section(console, section)

    ending = _ending(answer, together, interrupted=interrupt.happened)
    return answered(run, f"{problem.name}: periods", sections, out, show, ending, where)


def _proven(period: Period[Any]) -> dict[str, Any]:
    """Fields of ``plan.toml`` on what was proven of a period's plan."""
    return {"objective": period.solution.objective, "bound": period.solution.bound}


def check_new_folder(option: str, folder: Path | None) -> None:
    """Raises UsageError where something is at the folder's path."""
    if folder is not None and folder.exists():
        raise UsageError(f"{option} {folder}: it is there already; give a new folder")


def write_numbered(found: Sequence[tuple[Problem[Any], Any, dict[str, Any]]], plans: Path | None) -> list[str]:
    """Write instance and plan of each period or scenario, where it has a plan, with what ``plan.toml`` says of it;
    returns the sentence that says where they are."""
    if plans is None or not found:
        return []
    for number, (instance, plan, fields) in enumerate(found, 1):
        if plan is not None:
            folder = plans / f"{number}"
            folder.mkdir(parents=True)
            write(instance, folder / "instance")
            write_plan(instance, plan, fields, folder / "plan")
    return [f"Instances and plans are in {plans}/1, {plans}/2, …"]


def _ending(answer: Periods[Any], together: JointPeriods[Any] | None, *, interrupted: bool) -> tuple[Exit, str]:
    """Exit code and closing words of ``mast-opt periods``."""
    if answer.complete or (together is not None and together.periods):
        return Exit.OK, ""
    if interrupted:
        return Exit.INTERRUPTED, "interrupted; the periods so far are shown."
    last = answer.periods[-1]
    reasons = "; ".join(conflict.message for conflict in last.solution.conflicts) or last.solution.message
    return exit_for(last.solution.status) or Exit.NO_PLAN, f"The period {last.name} has no plan: {reasons}"
