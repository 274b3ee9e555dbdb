"""``mast-opt pareto``."""

from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from mast_opt.cli import options
from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.interrupt import Interrupt
from mast_opt.cli.invocation import Answer, Console
from mast_opt.cli.json_record import frontier_keys
from mast_opt.cli.table_output import TableOut, answered, check_table_output
from mast_opt.core.solve_result import Status
from mast_opt.planner.analysis.pareto import Frontier, pareto
from mast_opt.planner.io import read
from mast_opt.planner.solving.auto_strategy import DEFAULT_SOLVER
from mast_opt.problems.registry import kind_of


@dataclass(frozen=True)
class _Limits(options.SolveOptions):
    time_limit: Annotated[float | None, options.above(0, "Seconds for all points together.")] = None
    gap: Annotated[float, options.at_least(0, "Relative gap that counts as proven.")] = 1e-3


def command(
    path: options.Instance,
    /,
    *,
    terms: Annotated[str, Parameter(help="Two terms of the objective: storage,peak.")],
    points: Annotated[int, options.at_least(2, "How many points to look for.")] = 7,
    keep: Annotated[list[str] | None, options.repeated("TERM=VALUE: no plan with more of another term.")] = None,
    weight: options.Weight = None,
    limit: options.LimitOption = None,
    solver: Annotated[str, Parameter(help="A solver that 'mast-opt backends' lists.")] = DEFAULT_SOLVER,
    limits: _Limits = _Limits(),
    jobs: Annotated[int, options.at_least(1, "Points solved at the same time.")] = 1,
    formulation: Annotated[str, Parameter(help="How the problem is stated to a MIP solver.")] = "base",
    param: options.Param = None,
    params: options.ParamFile = None,
    out: TableOut = None,
    force: options.Force = False,
    json: options.Json = False,
    run: options.TheRun,
) -> Answer:
    """Trade-off between two terms of the objective: the Pareto frontier.

    Ctrl-C stops the search and keeps the points found so far (exit code 130); a second one leaves at once.

    With a MIP solver every point has a proven bound: no plan with no more of the first term has less of the second.
    Other terms are minimised last, unless --keep limits them; reading remotely, for instance, makes storage needless,
    so ask for storage,peak with --keep remote=0.001. With a heuristic the weights of the two terms are varied.

        mast-opt pareto my-instance --terms storage,peak --keep remote=0.001
        mast-opt pareto my-instance --terms storage,remote --points 12 --out frontier.csv
        mast-opt pareto my-instance --terms storage,peak --solver tetris --time-limit 120
        mast-opt pareto my-instance --terms storage,peak --json | jq '.points[].terms.peak'
    """
    run.record["solver"] = solver
    check_table_output(out, force)
    kept = options.numbers_by_name("--keep", keep, "remote=0.001")
    with run.phase("read", f"reading {path}"):
        problem = options.overrides_given(None, limits=limit).applied_to(read(path))
        if weight:
            problem = problem.with_objective(options.numbers_by_name("--weight", weight, "remote=500"))
        run.record["kind"] = problem.kind
        chosen = options.params_given(kind_of(problem), solver, param, params)
    with Interrupt(run, "the points so far") as interrupt:
        run.compile(problem, solver, interrupt.cancel)
        with run.phase("solve", "following the frontier"):
            answer = pareto(
                problem,
                tuple(terms.split(",")),
                points=points,
                keep=kept,
                solver=solver,
                jobs=jobs,
                formulation=formulation,
                params=chosen,
                **limits.keywords(interrupt.cancel),
            )
    run.record.update(frontier_keys(answer))
    from mast_opt.planner.report.result_sections import frontier_sections

    def show(console: Console) -> None:
        from mast_opt.planner.report.terminal.analysis import show_frontier

        show_frontier(console, problem.name, answer)

    title = f"{problem.name}: {terms.replace(',', ' against ')}"
    ending = _ending(answer, interrupted=interrupt.happened)
    return answered(run, title, frontier_sections(answer), out if answer.points else None, show, ending)


def _ending(answer: Frontier[Any], *, interrupted: bool) -> tuple[Exit, str]:
    """Exit code and closing words of ``mast-opt pareto``."""
    if answer.status is Status.INFEASIBLE:
        return Exit.INFEASIBLE, "Proven infeasible: there is no plan at all; 'mast-opt explain' says why."
    if interrupted:
        found = "the points so far are kept" if answer.points else "no point had been found"
        return Exit.INTERRUPTED, f"interrupted; {found}."
    if not answer.points:
        return Exit.NO_PLAN, "No point was found; raise --time-limit or try another solver."
    return Exit.OK, ""
