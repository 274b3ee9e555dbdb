"""``mast-opt report``."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from mast_opt.cli.bound_check import Proof, check_bound, number_in, objective_meant, text_in, wrong_claims
from mast_opt.cli.commands.solve import check_not_input
from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.invocation import Answer, Console, Run
from mast_opt.cli.json_record import verdict_keys
from mast_opt.cli.options import Begin, Force, Json, TheRun
from mast_opt.core.errors import UsageError
from mast_opt.core.solve_result import relative_gap
from mast_opt.core.verdict import Verdict
from mast_opt.core.wording import percent
from mast_opt.planner.analysis.goals import PLAN, repeated
from mast_opt.planner.analysis.region_loss import STORED, loss_fields, stored_losses
from mast_opt.planner.io import PlanReading, read, read_certificate, read_events, read_plan_of
from mast_opt.planner.io.atomic import check_free
from mast_opt.planner.solving import verify
from mast_opt.planner.solving.dispatch import stated_goal
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import kind_of

CLAIMED = ("bound", "gap", "status", "stages", "least_missing_gpus", STORED)
"""Claims of ``plan.toml`` that no verifier can see in the plan."""
FROM_TODAY = "terms and key figures count from today, in 'whatif' from the first stage"
"""Note on a report with a first stage."""


def command(
    path: Annotated[Path, Parameter(help="The instance of a plan; or a run, the folder of 'mast-opt simulate --out'.")],
    plan: Annotated[
        Path | None, Parameter(help="The plan: what 'mast-opt solve --out' wrote, or tables of your own.")
    ] = None,
    /,
    *,
    out: Annotated[
        Path, Parameter(help="The page to write, .html, a workbook of results, .xlsx, or the usage of a run, .csv.")
    ] = Path("report.html"),
    png: Annotated[Path | None, Parameter(help="Write the charts as a picture too, .png.")] = None,
    price: Annotated[
        dict[str, float] | None, Parameter(help="Price of a GPU-hour of a type, for the usage of a run.", negative=())
    ] = None,
    first: Annotated[
        Path | None, Parameter(help="A plan that is carried out before, such as the first stage after a loss.")
    ] = None,
    begin: Begin = None,
    force: Force = False,
    json: Json = False,
    run: TheRun,
) -> Answer:
    """Draw a plan or a simulated run: one page that opens in any browser, without a network.

    Key figures, terms, heat map before and after, demand against supply, fill, flows, how the search went, and the
    table behind each picture; light and dark, wide and on a phone. Every figure is the verifier's; bound and status are
    those of plan.toml, and left out where it states another objective or was written for another instance. A bound that
    'mast-opt verify' cannot check is marked as such.

    Of a run: jobs that wait and GPUs in use over time, data and moves where there are any, who waited longest and why,
    usage by tenant and month (GPU-hours asked, held, idle and lost), and every metric, all from its log of events. The
    name .csv writes the usage alone; ``--price.TYPE`` gives the price of a GPU-hour of a type.

        mast-opt report my-instance my-plan --begin 2027-01-11 --out my-report.html
        mast-opt report my-instance my-plan --out my-report.html --png my-report.png
        mast-opt report my-instance my-plan --out results.xlsx
        mast-opt report my-instance plans-of-goals --out my-report.html
        mast-opt report after/1/instance after/1/plan --first after/1/first
        mast-opt report my-run --out my-report.html
        mast-opt report my-run --out usage.csv --price.h100 2.5
    """
    if plan is None:
        if begin is not None:
            raise UsageError("--begin is for plans; leave it out for a run")
        if first is not None:
            raise UsageError("--first is for plans; leave it out for a run")
        return _of_run(path, out, png, price, force, run)
    if price is not None:
        raise UsageError("--price is for runs; leave it out for a plan")
    workbook = out.suffix.lower() == ".xlsx"
    if workbook and png is not None:
        raise UsageError("--png goes with a page; write it with --out NAME.html")
    with run.phase("read", f"reading {path}"):
        problem = read(path)
        run.record["kind"] = problem.kind
        others = _goals_in(plan, problem)
        plan = plan / next(iter(others)) if others else plan
        reading = read_plan_of(problem, plan)
        events = read_events(plan)
        arrays = read_certificate(plan)
        instance, problem = problem, reading.problem
        if workbook:
            check_free(out, force=force)
            check_not_input(out, path, plan)
    with run.phase("verify", "drawing"):
        verdict = verify(problem, reading.plan)
        proof = check_bound(problem, verdict, reading.fields, arrays)
        fields, notes = _to_be_believed(problem, verdict, reading, proof, plan.name if others else None)
        notes += _notes_on_goals(instance, others)
        notes += [] if first is None else [FROM_TODAY]
        own = stored_losses(fields)
        fields |= loss_fields(own | {name: stored_losses(one.fields).get(PLAN) for name, one in others.items() if own})
        checked = proof.checked if fields.get("bound") is not None else None
        known: dict[str, Any] = {"fields": fields, "events": events, "notes": notes, "bound_checked": checked}
        known |= {"overrides": reading.overrides, "begin": begin}
        known["first"] = None if first is None else read_plan_of(instance, first).plan
        known["others"] = {name: one.plan for name, one in others.items()}
        if workbook:
            from mast_opt.planner.report.workbook.results import write_workbook

            write_workbook(instance, reading.plan, out, **known)
        else:
            from mast_opt.planner.report.html.write import write_report

            write_report(instance, reading.plan, out, picture=png, force=force, **known)
    run.record.update(verdict_keys(verdict))
    run.record.update(solver=text_in(fields, "solver"), out=str(out), png=None if png is None else str(png))
    run.record.update(same_instance=reading.same_instance, bound_checked=checked, notes=notes)

    def show(console: Console) -> None:
        for note in notes:
            console.print(f"Note: {note}.", soft_wrap=True)
        console.print(f"The report is in {out}" + (f", the picture in {png}." if png else "."), soft_wrap=True)

    return Answer(Exit.OK, show)


def _goals_in(folder: Path, problem: Problem[PlanT]) -> dict[str, PlanReading[PlanT]]:
    """The plans of ``solve --goals --out``, that of the least change first; empty for a folder of one plan."""
    names = [name for name in kind_of(problem).goals if (folder / name / "plan.toml").is_file()]
    return {name: read_plan_of(problem, folder / name) for name in names}


def _notes_on_goals(problem: Problem[Any], goals: Mapping[str, PlanReading[Any]]) -> list[str]:
    """Goals that have the plan of another, and the gap of objective and bound that each plan's file states."""
    if not goals:
        return []
    same = repeated({name: one.plan for name, one in goals.items()})
    gaps = {
        name: relative_gap(number_in(one.fields, "objective"), number_in(one.fields, "bound"))
        for name, one in goals.items()
    }
    rest = {name: " with its replicas" * bool(one.overrides.copies_min) for name, one in goals.items()}
    stated = ", ".join(f"{name} {percent(gap)}{rest[name]}" for name, gap in gaps.items())
    said = []
    for name in goals:
        with suppress(UsageError):  # it means nothing for this instance
            said.append((name, stated_goal(problem, name, {}).note))
    return [
        *(f"{name}: {note}" for name, note in said if note),
        *(f"the goal {name} has the same plan as {first}" for name, first in same.items()),
        f"gaps that the plans state: {stated}",
    ]


def _of_run(path: Path, out: Path, png: Path | None, price: dict[str, float] | None, force: bool, run: Run) -> Answer:
    """Write the report of a simulated run for ``mast-opt report``."""
    from mast_opt.live.loop.history import history
    from mast_opt.live.reports.content import write_run_report
    from mast_opt.live.reports.usage import usage_of, write_usage
    from mast_opt.live.simulation.run_folder import read_run
    from mast_opt.planner.io.plain_tables import is_run

    if not is_run(path):
        raise UsageError(f"{path} is no folder of a run; expected such a folder, or an instance and a plan of it")
    if png is not None:
        raise UsageError("--png is for plans; leave it out for a run")
    with run.phase("read", f"reading {path}"):
        stored = read_run(path)
    if out.suffix.lower() == ".csv":
        with run.phase("verify", "adding up"):
            write_usage(usage_of(history(stored.events()), price), out, force=force)
        run.record.update(kind="run", name=stored.facts.trace, out=str(out))
        return Answer(Exit.OK, lambda console: console.print(f"The usage is in {out}.", soft_wrap=True))
    with run.phase("verify", "drawing"):
        content = write_run_report(stored, out, price, force=force)
    violations = [str(violation) for violation in content.violations]
    run.record.update(kind="run", name=content.title, out=str(out), violations=violations, notes=list(content.notes))
    return Answer(Exit.OK, lambda console: console.print(f"The report is in {out}.", soft_wrap=True))


def _to_be_believed(
    problem: Problem[PlanT], verdict: Verdict, reading: PlanReading[PlanT], proof: Proof, goal: str | None
) -> tuple[dict[str, Any], list[str]]:
    """Fields of ``plan.toml`` without a bound and a status that are another instance's or wrong, and the reasons after
    the goal, or what the plan was solved with."""
    meant = objective_meant(problem, verdict, reading.fields)
    fields = {**reading.fields, "objective": meant}
    wrong = [*wrong_claims(problem, reading.plan, verdict, reading.fields), *proof.wrong]
    why = [reading.foreign] if reading.foreign else []
    why += [f"the file plan.toml states another {claim.constraint} than the verifier finds" for claim in wrong]
    if why:
        why[-1] += "; its bound and status are left out"
        fields = {name: value for name, value in fields.items() if name not in CLAIMED}
    solved_with = [f"the plan was solved with {reading.overrides}"] if reading.overrides else []
    if goal is not None:
        solved_with = [f"the page is on the plan of the goal {goal}, by its objective; others stand next to it"]
    return fields, [*solved_with, *why]
