"""``mast-opt whatif``."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from mast_opt.cli import options
from mast_opt.cli.commands.periods import check_new_folder, write_numbered
from mast_opt.cli.commands.solve import exit_for
from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.interrupt import Interrupt
from mast_opt.cli.invocation import Answer, Console
from mast_opt.cli.json_record import violation_keys, whatif_keys
from mast_opt.cli.table_output import answered, check_table_output, is_table_file
from mast_opt.core.errors import UsageError
from mast_opt.core.verdict import Violation
from mast_opt.core.wording import counted, percent
from mast_opt.planner.analysis.scenario_files import BASE, check_scenarios, read_scenarios, scenario_warnings
from mast_opt.planner.analysis.whatif import GIVEN, Outcome, WhatIf, whatif
from mast_opt.planner.io import check_plan_target, validate, write_plan
from mast_opt.planner.solving import verify
from mast_opt.planner.solving.auto_strategy import DEFAULT_SOLVER


@dataclass(frozen=True)
class _Limits(options.SolveOptions):
    time_limit: Annotated[float | None, options.above(0, "Seconds for each scenario, and for the robust plan.")] = None


def command(
    path: options.Instance,
    /,
    *,
    scenarios: Annotated[Path, Parameter(help="A TOML file with a table [[scenario]] for each.")],
    plan: Annotated[
        Path | None, Parameter(help="The base plan, which is not planned again; solved for unless given.")
    ] = None,
    robust: Annotated[
        str | None, Parameter(help="worst or weighted: also one plan for all scenarios, by a MIP solver.")
    ] = None,
    weight: options.Weight = None,
    order: options.Order = None,
    limit: options.LimitOption = None,
    solver: Annotated[str, Parameter(help="A solver that 'mast-opt backends' lists.")] = DEFAULT_SOLVER,
    limits: _Limits = _Limits(),
    jobs: Annotated[int, options.at_least(1, "Scenarios solved at the same time.")] = 1,
    param: options.Param = None,
    params: options.ParamFile = None,
    out: Annotated[
        Path | None,
        Parameter(
            help="Write the scenarios to this .xlsx, .csv, .json or .md file; or, with --robust, the robust plan to "
            "this folder."
        ),
    ] = None,
    plan_out: Annotated[
        Path | None, Parameter(help="Write instance and plan of each scenario to this new folder.")
    ] = None,
    force: options.Force = False,
    strict: options.Strict = False,
    json: options.Json = False,
    run: options.TheRun,
) -> Answer:
    """Solve scenarios of change: a lost region, more demand, new hardware, other prices, a pin.

    Every scenario is planned again and compared with the base plan: terms, key figures, what has to be moved, and how
    many limits the base plan would break if nothing were done. Work that cannot be served is priced, never forbidden.
    Weights, order and limits are those of --weight, --order and --limit, then those that the base plan was solved with,
    then the instance's. With --robust there is also one plan whose replicas serve all scenarios, next to what the base
    plan's would.

    A file of scenarios for data placement (a misspelt key lists all there are):

        [[scenario]]
        name = "east is lost, demand up"
        lose_regions = ["east"]
        grow_demand = { all = 1.2 }

        [[scenario]]
        name = "more GPUs"
        weight = 0.5
        add_gpus = [{ region = "west", gpu_type = "H100", gpus = 64 }]

    Then:

        mast-opt whatif my-instance --scenarios what-if.toml --plan my-plan --jobs 4
        mast-opt whatif my-instance --scenarios what-if.toml --robust worst --out robust-plan
        mast-opt whatif my-instance --scenarios what-if.toml --plan my-plan --out scenarios.xlsx --plan-out after
        mast-opt whatif my-instance --scenarios what-if.toml --json | jq '.scenarios[].metrics.peak_ratio'
    """
    run.record["solver"] = solver
    tables = out if out is not None and is_table_file(out) else None
    if tables is not None or force:
        check_table_output(tables, force, plan_out)
    elif out is not None and robust is None:
        raise UsageError(
            f"--out {out}: expected a name that ends in .xlsx, .csv, .json or .md; a folder is for the robust plan, "
            "with --robust worst or --robust weighted"
        )
    check_new_folder("--plan-out", plan_out)
    with run.phase("read", f"reading {path}"):
        reading = validate(path)
        problem = reading.problem
        run.record["kind"] = problem.kind
        chosen = options.params_given(reading.kind, solver, param, params)
        described = read_scenarios(scenarios)
        check_scenarios(reading.kind, described)
        doubtful = scenario_warnings(reading.kind, described, scenarios.name)
        run.warn([*reading.warnings, *doubtful], strict=strict)
        base = None if plan is None else run.plan_of(problem, plan)
        begin = None if base is None else base.plan
        overrides = options.overrides_given(weight, order, limit)
        overrides = overrides if base is None else base.overrides.followed_by(overrides)
        stated = overrides.applied_to(problem)
        if out is not None and tables is None:
            check_plan_target(problem, out)
    with Interrupt(run, "what was found so far") as interrupt:
        run.compile(problem, solver, interrupt.cancel)
        with run.phase("solve", f"planning for {len(described)} scenarios"):
            answer = whatif(
                stated,
                described,
                begin,
                robust=robust,
                solver=solver,
                jobs=jobs,
                params=chosen,
                on_outcome=lambda one: run.say(
                    f"planned: {one.name}, {one.solution.outcome}, "
                    f"gap {percent(one.open_gap)} of what a plan can change"
                    if begin is None or one.name != BASE
                    else f"base: {GIVEN}"
                ),
                **limits.keywords(interrupt.cancel),
            )
    runtime_s = run.record["runtime_s"]
    run.record.update(whatif_keys(answer), runtime_s=runtime_s)
    where = _written(answer, plan_out)
    run.record["plan_out"] = str(plan_out) if where else None
    if answer.robust is not None:
        broken = () if answer.robust.plan is None else verify(stated, answer.robust.plan).violations
        run.record["robust"]["violations"] = [violation_keys(violation) for violation in broken]
        if out is not None and tables is None and answer.robust.plan is not None:
            objective = answer.robust.robust["base"].objective
            fields = {
                "objective": objective,
                "solver": solver,
                "seed": limits.seed,
                "overrides": overrides.fields() or None,
            }
            write_plan(problem, answer.robust.plan, fields, out)
            run.record["out"] = str(out)
            where.append(_where(out, broken))
    from mast_opt.planner.report.result_sections import whatif_sections

    def show(console: Console) -> None:
        from mast_opt.planner.report.terminal.analysis import show_whatif

        show_whatif(console, problem.name, answer)

    ending = _ending(answer, interrupted=interrupt.happened)
    return answered(run, f"{problem.name}: scenarios", whatif_sections(answer), tables, show, ending, where)


def _written(answer: WhatIf[Any], plan_out: Path | None) -> list[str]:
    """Write instance and plan of each scenario, and first stages; returns sentences that say where they are."""

    def fields(one: Outcome[Any], plan: Any, objective: float | None) -> dict[str, Any]:  # noqa: ANN401 - of any kind
        """Fields of ``plan.toml``: the objective from today, not from a first stage."""
        return {"objective": objective if one.first is None else verify(one.problem, plan).objective}

    outcomes = [
        replace(one, problem=replace(one.problem, name=f"{one.problem.name}, {one.name}")) for one in answer.outcomes
    ]
    plans = [(one, one.solution.plan, one.solution.objective) for one in outcomes]
    where = write_numbered([(one.problem, plan, fields(one, plan, value)) for one, plan, value in plans], plan_out)
    for number, one in enumerate(outcomes, 1):
        if plan_out is not None and one.first is not None:
            folder = plan_out / f"{number}"
            write_plan(one.problem, one.first, fields(one, one.first, None), folder / "first")
            where.append(f"The way: mast-opt steps {folder}/instance {folder}/first {folder}/plan")
            where.append(f"Its report: mast-opt report {folder}/instance {folder}/plan --first {folder}/first")
    return where


def _where(out: Path, broken: Sequence[Violation]) -> str:
    """A sentence that says where the robust plan is, and that it breaks limits of the instance, in which nothing is
    priced."""
    if not broken:
        return f"The robust plan is in {out}."
    names = f"{broken[0].name}, …" if len(broken) > 1 else broken[0].name
    return (
        f"The robust plan is in {out}. It breaks {counted(len(broken), 'limit')} of the instance ({names}): work that "
        "cannot be served is priced here and forbidden there."
    )


def _ending(answer: WhatIf[Any], *, interrupted: bool) -> tuple[Exit, str]:
    """Exit code and closing words of ``mast-opt whatif``."""
    if interrupted:
        found = "no base plan had been found" if answer.base.solution.plan is None else "what was found so far is shown"
        return Exit.INTERRUPTED, f"interrupted; {found}."
    if answer.base.solution.plan is None:
        return exit_for(answer.base.solution.status), "There is no base plan; 'mast-opt explain' says why."
    if answer.robust is not None and answer.robust.plan is None:
        code = exit_for(answer.robust.status)
        if code is Exit.INFEASIBLE:
            return code, f"Proven infeasible: no set of {answer.robust.decided} keeps every limit in all scenarios."
        return code or Exit.NO_PLAN, "No robust plan was found; raise --time-limit or try another MIP solver."
    if any(one.solution.plan is None for one in answer.outcomes):
        return Exit.OK, "Where a scenario has no plan, data has no room left, or --time-limit was too short."
    return Exit.OK, ""
