"""``mast-opt buy``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from mast_opt.cli.commands.periods import check_new_folder, write_numbered
from mast_opt.cli.commands.solve import exit_for
from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.interrupt import Interrupt
from mast_opt.cli.invocation import Answer, Console, Run
from mast_opt.cli.json_record import order_date_keys, purchase_keys
from mast_opt.cli.options import Begin, Force, Instance, Json, SolveOptions, TheRun, above, at_least
from mast_opt.cli.table_output import TableOut, answered, check_table_output
from mast_opt.core.errors import UsageError
from mast_opt.core.solve_result import Status
from mast_opt.core.wording import percent
from mast_opt.planner.analysis.purchase_question import BuyParams, Purchases
from mast_opt.planner.analysis.purchases import buy
from mast_opt.planner.io import check_plan_target, check_target, read, write, write_plan
from mast_opt.planner.solving.auto_strategy import DEFAULT_SOLVER
from mast_opt.problems.kind.problem import Problem

if TYPE_CHECKING:
    from mast_opt.planner.analysis.purchases_in_time import PurchasesInTime


@dataclass(frozen=True)
class _Limits(SolveOptions):
    time_limit: Annotated[float | None, above(0, "Seconds for all solves.")] = None
    gap: Annotated[float, at_least(0, "Relative gap of the price.")] = 1e-4


def command(
    path: Instance,
    /,
    *,
    target: Annotated[float, above(0, "Most demand over supply, in every region and GPU type.")] = 1.0,
    tier: Annotated[int | None, at_least(0, "Only work up to this tier counts; all unless given.")] = None,
    budget: Annotated[float | None, at_least(0, "The most to spend, USD.")] = None,
    within: Annotated[int | None, at_least(0, "Only what can be used after so many days.")] = None,
    plan: Annotated[
        Path | None,
        Parameter(help="A plan to begin from; with --periods, that of the first period if it is at the target."),
    ] = None,
    periods: Annotated[
        Path | None, Parameter(help="A file of periods, as of 'mast-opt periods': what to order when for all of them.")
    ] = None,
    solver: Annotated[
        str, Parameter(help="A MIP solver, or a heuristic of the kind for large instances.")
    ] = DEFAULT_SOLVER,
    limits: _Limits = _Limits(),
    param: Annotated[
        list[str] | None,
        Parameter(
            negative=(),
            help="NAME=VALUE: how time is divided and the heuristic searches: "
            + ", ".join(f"{name}={one.default}" for name, one in BuyParams.parameters().items())
            + ". Repeatable.",
        ),
    ] = None,
    begin: Begin = None,
    instance_out: Annotated[
        Path | None, Parameter(help="Write the instance after the purchase to this folder, .xlsx or .json file.")
    ] = None,
    plan_out: Annotated[
        Path | None,
        Parameter(help="Write the plan of that instance to this folder; with --periods, instance and plan of each."),
    ] = None,
    out: TableOut = None,
    force: Force = False,
    json: Json = False,
    run: TheRun,
) -> Answer:
    """Find the cheapest purchases with which no region is overloaded.

    The table 'candidates' of the instance says what is offered: GPUs of a type, storage, or capacity of a link, in
    which region, in which steps, at which price, after how many days. Every workload is served. A MIP solver decides
    purchases and plan together and proves that nothing cheaper will do; a heuristic proves a bound. A budget that is
    too small is infeasible (exit code 3), and the answer says how much would do.

        mast-opt buy my-instance
        mast-opt buy my-instance --target 0.9 --tier 0 --budget 2000000 --within 60
        mast-opt buy my-instance --out what-to-buy.xlsx --instance-out bought --plan-out bought-plan
        mast-opt buy my-instance --periods growth.toml --begin 2027-01-11 --out what-to-order.csv
        mast-opt buy my-instance --solver tetris --time-limit 120
    """
    run.record["solver"] = solver
    chosen = BuyParams.parse(param or (), {})
    check_table_output(out, force, instance_out, plan_out)
    if periods is not None:
        check_new_folder("--plan-out", plan_out)
    with run.phase("read", f"reading {path}"):
        problem = read(path)
        run.record["kind"] = problem.kind
        start = None if plan is None else run.plan_of(problem, plan).plan
        if plan_out is not None:
            check_plan_target(problem, plan_out)
        if instance_out is not None:
            check_target(problem, instance_out, force=force)
    if periods is not None:
        single: dict[str, object] = {"--budget": budget, "--within": within}
        single |= {"--instance-out": instance_out}
        unfit = [name for name, value in single.items() if value is not None]
        if unfit:
            raise UsageError(f"--periods is about several instances; leave out {', '.join(unfit)}")
        asked: dict[str, Any] = {"target": target, "tier": tier, "solver": solver, "start": start, "params": chosen}
        return _in_time(run, problem, periods, limits, asked, out, begin, plan_out)
    if begin is not None:
        raise UsageError("--begin dates the orders of --periods; state both")
    with Interrupt(run, "nothing") as interrupt:
        run.compile(problem, solver, interrupt.cancel)
        with run.phase("solve", "choosing purchases", lines=True):
            answer = buy(
                problem,
                target=target,
                tier=tier,
                budget_usd=budget,
                within_days=within,
                solver=solver,
                start=start,
                params=chosen,
                **limits.keywords(interrupt.cancel),
            )
    run.record.update(purchase_keys(answer))
    where = _write(run, answer, instance_out, plan_out, {"solver": solver, "seed": limits.seed}, force)
    from mast_opt.planner.report.result_sections import purchase_sections

    def show(console: Console) -> None:
        from mast_opt.planner.report.terminal.analysis import show_purchases

        show_purchases(console, problem.name, answer)

    ending = _ending(answer, interrupted=interrupt.happened)
    return answered(run, f"{problem.name}: what to buy", purchase_sections(answer), out, show, ending, where)


def _in_time(
    run: Run,
    problem: Problem[Any],
    file: Path,
    limits: _Limits,
    asked: dict[str, Any],
    out: Path | None,
    begin: date | None,
    plan_out: Path | None,
) -> Answer:
    """Orders for several periods."""
    from mast_opt.planner.analysis.purchases_in_time import buy_in_time
    from mast_opt.planner.analysis.scenario_files import read_periods
    from mast_opt.planner.report.result_sections import order_date_sections
    from mast_opt.planner.report.terminal.progress import Progress
    from mast_opt.planner.report.terminal.sections import show_section

    periods = read_periods(file)
    with Interrupt(run, "nothing") as interrupt:
        run.compile(problem, asked["solver"], interrupt.cancel)
        words = f"purchases for {len(periods)} periods"
        with (
            run.phase("solve"),
            Progress(run.err, words, limits.time_limit, run.elapsed_s, "no purchases yet", lines=True) as progress,
        ):
            answer = buy_in_time(problem, periods, **asked, on_event=progress, **limits.keywords(interrupt.cancel))
    run.record.update(order_date_keys(answer, begin))
    code = Exit.OK if answer.periods else exit_for(answer.status)
    gap = max(limits.gap, asked["params"].plan_gap)
    words = (
        f"{answer.message}. {_proven(answer, gap)}" if answer.periods else f"{answer.status.value}: {answer.message}."
    )
    sections = order_date_sections(answer, begin)

    def show(console: Console) -> None:
        for section in sections:
            show_section(console, section, None)

    fields = {"solver": asked["solver"], "seed": limits.seed}
    plans = [
        (one.instance, one.plan, {**fields, "objective": one.planned.solution.objective}) for one in answer.periods
    ]
    where = write_numbered(plans, plan_out)
    run.record["plan_out"] = str(plan_out) if where else None
    return answered(run, f"{problem.name}: what to order when", sections, out, show, (code, words), where)


def _proven(answer: PurchasesInTime[Any], gap: float) -> str:
    """Sentences on what is proven of the price, of the dates, and, within a gap, of the plans."""
    dates, price = answer.status is Status.OPTIMAL, "nothing"
    if dates or (answer.usd is not None and answer.bound_usd == float(answer.usd)):
        price = "proven the least for plans from today"
    elif answer.bound_usd is not None:
        price = f"not proven the least; for plans from today none is less than {answer.bound_usd:,.0f} USD"
    latest = "proven the latest" if dates else "not proven the latest"
    statuses = [one.planned.solution.status for one in answer.periods]
    optimal = sum(status is Status.OPTIMAL for status in statuses)
    plans = f"{optimal} of {len(statuses)} proven within {percent(gap)}"
    return f"Price: {price}. Order dates: {latest}. Plans: {plans}."


def _write(
    run: Run,
    answer: Purchases[Any],
    instance_out: Path | None,
    plan_out: Path | None,
    fields: dict[str, Any],
    force: bool,
) -> list[str]:
    """Write the instance after the purchase and its plan; returns the sentences that say where they are."""
    run.record["instance_out"] = run.record["plan_out"] = None
    where: list[str] = []
    if answer.instance is None or answer.plan is None:
        return where
    if instance_out is not None:
        write(answer.instance, instance_out, force=force)
        run.record["instance_out"] = str(instance_out)
        where.append(f"The instance after the purchase is in {instance_out}.")
    if plan_out is not None:
        write_plan(answer.instance, answer.plan, fields, plan_out)
        run.record["plan_out"] = str(plan_out)
        where.append(f"Its plan is in {plan_out}.")
    return where


def _ending(answer: Purchases[Any], *, interrupted: bool) -> tuple[Exit, str]:
    """Exit code and closing words of ``mast-opt buy``."""
    if answer.status is Status.INFEASIBLE:
        return Exit.INFEASIBLE, f"Infeasible: {answer.message}."
    if answer.plan is None and interrupted:
        return Exit.INTERRUPTED, "interrupted; no purchase had been found."
    if answer.plan is None:
        return Exit.NO_PLAN, f"No purchase was found: {answer.message}. Raise --time-limit or try another solver."
    return Exit.OK, ""
