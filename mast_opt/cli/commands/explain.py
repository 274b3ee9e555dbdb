"""``mast-opt explain``."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import join
from typing import Annotated, Any

from cyclopts import Parameter

from mast_opt.cli import options
from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.interrupt import Interrupt
from mast_opt.cli.invocation import Answer, Console, Run
from mast_opt.cli.json_record import explanation_keys, risk_keys
from mast_opt.core.errors import UsageError
from mast_opt.core.solve_result import Status
from mast_opt.planner.analysis.explain import Explanation, explain
from mast_opt.planner.analysis.risk import risk as risk_of
from mast_opt.planner.io import check_target, read, write
from mast_opt.planner.solving.auto_strategy import DEFAULT_SOLVER
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import kind_of


def _about(noun: str) -> Parameter:
    """The option of ``mast-opt explain`` that names things of one sort to ask about."""
    return Parameter(
        negative=(),
        help=f"With --plan: a {noun} to ask about, or several with commas. Repeatable; without any, the heaviest few.",
    )


@dataclass(frozen=True)
class _Limits(options.TimeOptions):
    time_limit: Annotated[float | None, options.above(0, "Seconds for the conflict and the repairs.")] = None
    threads: Annotated[int | None, options.Threads] = 1


def command(  # noqa: C901 - one branch for each sort of question
    path: options.Instance,
    /,
    *,
    plan: Annotated[Path | None, Parameter(help="Ask why this plan does what it does.")] = None,
    workload: Annotated[list[str] | None, _about("workload")] = None,
    dataset: Annotated[list[str] | None, _about("dataset")] = None,
    job: Annotated[list[str] | None, _about("job")] = None,
    process: Annotated[list[str] | None, _about("process")] = None,
    reservation: Annotated[list[str] | None, _about("reservation")] = None,
    risk: Annotated[
        bool,
        Parameter(negative=(), help="What depends on each region, in --plan or today, and what has a single copy."),
    ] = False,
    solver: Annotated[str, Parameter(help="A MIP solver that 'mast-opt backends' lists.")] = DEFAULT_SOLVER,
    limits: _Limits = _Limits(),
    price: Annotated[
        list[str] | None,
        options.repeated("LIMIT=FACTOR: make repairs of one kind of limit more expensive, or inf: never."),
    ] = None,
    alternatives: Annotated[int, options.at_least(0, "How many repairs to look for.")] = 3,
    out: Annotated[
        Path | None, Parameter(help="Write the instance with the cheapest repair: a folder, .xlsx or .json.")
    ] = None,
    history: Annotated[
        Path | None,
        Parameter(help="With --plan, job placement: a trace of jobs that have run; it says when starts are expected."),
    ] = None,
    limit: options.LimitOption = None,
    force: options.Force = False,
    full: options.Full = False,
    json: options.Json = False,
    run: options.TheRun,
) -> Answer:
    """Explain why there is no plan and what would help, or why a plan does what it does.

    Without --plan: limits that contradict one another, of which none can be left out, in words and with amounts, and
    the cheapest repairs, each of them tried out (exit code 3; 0 if there is a plan after all). With --plan: for each
    workload, dataset, job, process or reservation, what else could be done with it, what that would change, and which
    limits forbid the rest; and when a job that waits starts, by time limits, and what would make that sooner.

    A repair pays for each limit that it touches: 1 for making storage, CPU, ingress or a link larger by the size of an
    average one, 1 for giving up a pin or ban, 5 for allowing remote reads or a new GPU type, 10 for leaving work out.

        mast-opt explain my-instance
        mast-opt explain my-instance --price storage=3 --price pin=inf
        mast-opt explain my-instance --out repaired-instance
        mast-opt explain my-instance --plan my-plan --workload ranking,spam
        mast-opt explain my-instance --plan my-plan --dataset clicks
        mast-opt explain my-instance --plan my-plan --risk
        mast-opt explain my-instance --json | jq .repairs
    """
    if risk and (out is not None or price or any((workload, dataset, job, process, reservation))):
        raise UsageError("--risk answers for all regions and solves nothing: leave out --out, --price and names")
    if out is not None and (plan is not None or not alternatives):
        raise UsageError("--out writes an instance that was repaired; leave out --plan, and ask for an alternative")
    options.check_force(force, out)
    with run.phase("read", f"reading {path}"):
        problem = read(path)
        run.record.update(kind=problem.kind, solver=None if plan is not None else solver)
        given = {"workload": workload, "dataset": dataset, "job": job, "process": process, "reservation": reservation}
        about = _names(problem, {noun: names for noun, names in given.items() if names})
        asked = None
        if plan is not None:
            reading = run.plan_of(problem, plan)
            asked, problem = reading.plan, reading.problem
        problem = options.overrides_given(None, limits=limit).applied_to(problem)
        if out is not None:
            check_target(problem, out, force=force)
    if risk:
        return _risk(run, problem, asked, full=full)
    prices = options.numbers_by_name("--price", price, "storage=3")
    with Interrupt(run, "what was found so far") as interrupt:
        if plan is None:
            run.compile(problem, solver, interrupt.cancel)
        with run.phase("solve", "looking for the reason"):
            answer = explain(
                problem,
                asked,
                about,
                solver=solver,
                prices=prices,
                alternatives=alternatives,
                **limits.keywords(interrupt.cancel),
            )
    starts = _starts(problem, asked, answer, history)
    run.record.update(explanation_keys(answer), starts=starts)
    repaired = out if answer.repairs else None
    if repaired is not None:
        write(answer.repairs[0].problem, repaired, force=force)
    run.record["out"] = None if repaired is None else str(repaired)
    code, words = _ending(answer, interrupted=interrupt.happened)
    if code is not Exit.OK:
        run.record["error"] = words

    def show(console: Console) -> None:
        from mast_opt.planner.report.terminal.analysis import show_explanation
        from mast_opt.planner.report.terminal.sections import print_words

        show_explanation(console, problem.name, answer, full=full)
        _show_starts(console, starts)
        if words and code is not Exit.INFEASIBLE:
            console.print(words, soft_wrap=True)
        if repaired is not None:
            again = join(["mast-opt", "solve", str(repaired)])
            print_words(console, f"\nThe first of them is done in {repaired}. Solve it:\n  {again}")
        elif out is not None:
            print_words(console, f"\nThere is nothing to write to {out}.")

    return Answer(code, show)


def _starts(
    problem: Problem[Any], plan: object, answer: Explanation, history: Path | None
) -> dict[str, dict[str, Any]]:
    """Starts of the jobs asked about that a plan leaves waiting; none for other kinds."""
    from mast_opt.problems.job_placement.plan import Plan
    from mast_opt.problems.job_placement.problem import JobPlacement

    if not (isinstance(problem, JobPlacement) and isinstance(plan, Plan)):
        if history is not None:
            raise UsageError("--history is about jobs that wait; expected a job-placement instance and --plan")
        return {}
    from mast_opt.live.service.planned_starts import planned_starts
    from mast_opt.live.simulation.traces.trace import read_trace

    asked = [one.name for one in answer.reasons]
    return planned_starts(problem, plan, asked, None if history is None else read_trace(history))


def _show_starts(console: Console, starts: Mapping[str, dict[str, Any]]) -> None:
    """Print when the jobs asked about start."""
    if starts:
        from mast_opt.live.service.planned_starts import in_words
        from mast_opt.planner.report.terminal.sections import print_words

        for name, start in starts.items():
            print_words(console, f"\n{in_words(name, start)}")


def _risk(run: Run, problem: Problem[PlanT], plan: PlanT | None, *, full: bool) -> Answer:
    """The answer to --risk; it needs no solve and ends with 0."""
    with run.phase("verify", "counting"):
        answer = risk_of(problem, plan)
    run.record.update(solver=None, **risk_keys(answer))

    def show(console: Console) -> None:
        from mast_opt.planner.report.terminal.analysis import show_risk

        show_risk(console, problem.name, answer, full=full)

    return Answer(Exit.OK, show)


def _names(problem: Problem[Any], given: Mapping[str, list[str]]) -> list[str]:
    """The names to ask about. Raises UsageError for an option of another kind of problem."""
    kind = kind_of(problem)
    decisions = kind.analysis.hooks().choices
    nouns = [choices.noun for choices in decisions]
    for noun in given:
        if noun not in nouns:
            instead = f"; use {' or '.join(f'--{own}' for own in nouns)}" if nouns else ""
            raise UsageError(f"--{noun} makes no sense here, since {problem.name} is a {kind.name} instance{instead}")
    known = {name for choices in decisions for name in choices.names(problem)}  # a name may hold a comma
    return [
        name
        for texts in given.values()
        for text in texts
        for name in ([text] if text in known else options.listed(text))
    ]


def _ending(answer: Explanation, *, interrupted: bool) -> tuple[Exit, str]:
    """Exit code and closing words of ``mast-opt explain``."""
    if answer.reasons or answer.status is None:
        return Exit.OK, ""
    if answer.status is Status.FEASIBLE:
        return Exit.OK, "Find one with 'mast-opt solve --out PLAN'; then --plan PLAN asks why it does what it does."
    if interrupted:
        infeasible = answer.status is Status.INFEASIBLE
        found = "what was found so far is shown" if infeasible else "it was not yet known whether there is a plan"
        return Exit.INTERRUPTED, f"interrupted; {found}."
    if answer.status is Status.NO_SOLUTION:
        return Exit.NO_PLAN, "Raise --time-limit, or try another MIP solver (mast-opt backends lists them)."
    return Exit.INFEASIBLE, f"infeasible: {'; '.join(answer.conflict)}"
