"""``mast-opt steps``."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.invocation import Answer, Console
from mast_opt.cli.options import Begin, Force, Full, Instance, Json, TheRun, at_least
from mast_opt.cli.table_output import TableOut, answered, check_table_output
from mast_opt.core.errors import UsageError
from mast_opt.core.solve_result import Status
from mast_opt.planner.analysis.goals import figures_of
from mast_opt.planner.analysis.migration_plan import first_steps, steps, way_of
from mast_opt.planner.analysis.plan_diff import first_changes
from mast_opt.planner.io import check_plan_target, read, write_plan
from mast_opt.planner.solving import verify
from mast_opt.problems.kind.migration_plan import Order
from mast_opt.problems.kind.presentation import Section
from mast_opt.problems.kind.problem import Problem

THESE, WHOLE = "these steps", "the whole plan"


def command(
    path: Instance,
    plan: Annotated[Path, Parameter(help="The plan: what 'mast-opt solve --out' wrote, or tables of your own.")],
    /,
    *then: Annotated[Path, Parameter(help="Further plans, each of which begins once the one before is carried out.")],
    first: Annotated[
        int | None,
        at_least(0, "Only the first so many steps, as they are listed without this option."),
    ] = None,
    changes: Annotated[
        int | None,
        at_least(
            0,
            "Only the steps for so many independent changes, as 'mast-opt diff' lists them: those that keep limits, "
            "then those that buy most.",
        ),
    ] = None,
    plan_out: Annotated[
        Path | None, Parameter(help="Write the plan after these steps or changes to this folder.")
    ] = None,
    begin: Begin = None,
    out: TableOut = None,
    force: Force = False,
    full: Full = False,
    json: Json = False,
    run: TheRun,
) -> Answer:
    """Order a plan's changes so that every limit holds at each step.

    For data placement: copies, deletions and moves of workloads, day by day, within storage (both replicas count
    while a dataset moves), cores, quotas, GPUs, ingress and links. A replica stays while running work needs it. Where
    no order keeps all work running, some work stops for a while and is named. Where data blocks data, the smallest
    stopovers resolve it; where nothing does, what is stuck is listed with the least room that would help (exit code 3).

        mast-opt steps my-instance my-plan
        mast-opt steps my-instance my-plan --begin 2027-01-11 --out steps.csv
        mast-opt steps after/1/instance after/1/first after/1/plan
        mast-opt steps my-instance my-plan --first 10 --plan-out first-ten
        mast-opt steps my-instance my-plan --changes 3
        mast-opt steps my-instance my-plan --json | jq .days
    """
    check_table_output(out, force, plan_out)
    _check(first, changes, plan_out, then)
    with run.phase("read", f"reading {path}"):
        problem = read(path)
        run.record["kind"] = problem.kind
        whole = wanted = run.plan_of(problem, plan).plan
        if plan_out is not None:
            check_plan_target(problem, plan_out)
    with run.phase("solve", "ordering the steps"):
        every = None
        if changes is not None:
            wanted = first_changes(problem, wanted, changes)
        if first is None:
            order = steps(problem, wanted, begin, then=[run.plan_of(problem, later).plan for later in then])
        else:
            every = steps(problem, wanted, begin)
            order, wanted = first_steps(problem, wanted, first, every)
        if plan_out is not None:
            fields = {"status": Status.FEASIBLE.value, "objective": verify(problem, wanted).objective}
            write_plan(problem, wanted, fields, plan_out)
    run.record.update(
        status=Status.INFEASIBLE.value if order.stuck and order.proven else None,
        steps=[{**asdict(move), "date": order.date_of(move.day)} for move in order.moves],
        stopped=[{**asdict(stopped), "date": order.date_of(stopped.day)} for stopped in order.stopped],
        notes=list(order.notes),
        lost=order.lost or None,
        late=order.late or None,
        stuck=[asdict(stuck) for stuck in order.stuck],
        waiting=[[asdict(row) for row in rows] for rows in order.waiting],
        remote=[{**asdict(one), "usd": one.usd} for one in order.remote],
        over_after=[{**asdict(one), "date": order.date_of(one.day)} for one in order.over_after],
        relief=list(order.relief),
        unit=order.unit,
        waves=order.waves,
        days=order.days,
        last_date=order.last_date,
        usd=order.usd,
        proven=order.proven,
    )
    if order.stuck:
        what = ", ".join(f"{stuck.what} → {stuck.target}" for stuck in order.stuck)
        run.record["error"] = "; ".join([f"stuck: {what}", *order.relief])

    from mast_opt.planner.report.change_sections import order_sections

    part = {} if first is None and changes is None else {THESE: wanted, WHOLE: whole}
    left = _compared(problem, part, {THESE: order, WHOLE: every or steps(problem, whole)}) if part else ()

    def show(console: Console) -> None:
        from mast_opt.planner.report.terminal.diff_and_migration import show_order
        from mast_opt.planner.report.terminal.sections import TOP_ROWS, show_section

        show_order(console, order, None if full else TOP_ROWS)
        for section in left:
            show_section(console, section, None)

    code = (Exit.INFEASIBLE if order.proven else Exit.NO_PLAN) if order.stuck else Exit.OK
    return answered(run, f"{problem.name}: steps", (*order_sections(order), *left), out, show, (code, ""))


def _compared(problem: Problem[Any], plans: Mapping[str, Any], orders: Mapping[str, Order]) -> tuple[Section, ...]:
    """The plan after some of the steps next to the whole plan."""
    from mast_opt.planner.report.result_sections import goal_sections

    found = figures_of(problem, plans, with_steps=False)
    found |= {name: replace(found[name], way=way_of(problem, order)) for name, order in orders.items()}
    these = found[THESE]  # of its own verdict money once would leave out copies that go on afterwards
    found[THESE] = replace(these, verdict=replace(these.verdict, terms=these.terms))
    return goal_sections(problem, found)


def _check(first: int | None, changes: int | None, plan_out: Path | None, then: tuple[Path, ...]) -> None:
    """Raises UsageError for options of ``mast-opt steps`` that exclude one another."""
    if first is not None and changes is not None:
        raise UsageError("--first counts steps, --changes counts changes; state one of them")
    if then and (first is not None or changes is not None):
        raise UsageError("--first and --changes take the steps to one plan; state one plan")
    if plan_out is not None and first is None and changes is None:
        raise UsageError("--plan-out writes the plan after the steps of --first or --changes; state how many")
