"""``mast-opt solve``."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from mast_opt.cli import options
from mast_opt.cli.advice import next_step
from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.interrupt import Interrupt
from mast_opt.cli.invocation import Answer, Console, Run
from mast_opt.cli.json_record import goal_keys, limit_keys, solution_keys, today_keys
from mast_opt.cli.search_log import EventLog, SearchLog
from mast_opt.core.errors import Contradiction, UsageError
from mast_opt.core.solve_limits import SolveLimits
from mast_opt.core.solve_result import Event, Status
from mast_opt.core.wording import percent
from mast_opt.planner.analysis.goals import LOSS_S, NOTHING, PLAN, Figures, figures_of, other_objective
from mast_opt.planner.analysis.region_loss import loss_fields
from mast_opt.planner.io import PlanReading, check_plan_target, read_start, validate
from mast_opt.planner.report.terminal.progress import Progress
from mast_opt.planner.solving import Solution, resolve, solve
from mast_opt.planner.solving.auto_strategy import DEFAULT_SOLVER
from mast_opt.planner.solving.dispatch import stated_goal
from mast_opt.planner.solving.solution import write_plan_folder
from mast_opt.problems.kind.current_state import CurrentState
from mast_opt.problems.kind.overrides import Overrides
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import kind_of

OptionValue = str | int | float | bool


@dataclass(frozen=True)
class _Limits(options.SolveOptions):
    time_limit: Annotated[
        float | None,
        options.above(
            0, "Seconds for reading, searching and writing. Loading libraries and compiling kernels are not counted."
        ),
    ] = None
    gap: Annotated[float, options.at_least(0, "Stop once proven within this relative gap.")] = 1e-4


def command(
    path: options.Instance,
    /,
    *,
    solver: Annotated[str, Parameter(help="A solver that 'mast-opt backends' lists.")] = DEFAULT_SOLVER,
    limits: _Limits = _Limits(),
    iterations: Annotated[
        int | None,
        options.at_least(1, "Rounds of a heuristic that improves a plan; then equal seeds give equal plans anywhere."),
    ] = None,
    start: Annotated[Path | None, Parameter(help="A plan to begin from.")] = None,
    near: Annotated[
        Path | None,
        Parameter(
            help="A plan, such as last week's, from which as few rows as possible are to differ, at most 0.1%, or a "
            "tenth of a gap that stays open, above the best objective found; also the start unless --start is given."
        ),
    ] = None,
    previous: Annotated[
        Path | None,
        Parameter(
            name="--from",
            help="The plan of an earlier, similar instance: the search begins with it and stays near it, the bound "
            "goes on from its prices, and without a limit it ends after a few rounds.",
        ),
    ] = None,
    freeze: Annotated[
        list[str] | None,
        options.repeated(
            "WHAT=NAME,…, or a CSV file with columns what and name: keep that part of --start, or of today, as it is."
        ),
    ] = None,
    weight: options.Weight = None,
    order: options.Order = None,
    goal: Annotated[
        str | None,
        Parameter(help="least-change, balanced, cheapest or safest: a named objective instead of weights or an order."),
    ] = None,
    goals: Annotated[
        bool,
        options.flag(
            "Solve for every goal in the time given, and compare the plans with doing nothing; --out has all."
        ),
    ] = False,
    limit: options.LimitOption = None,
    formulation: Annotated[str, Parameter(help="How the problem is stated to an exact solver.")] = "base",
    option: Annotated[
        list[str] | None, options.repeated("NAME=VALUE: an option of the solver itself, by its own name.")
    ] = None,
    param: options.Param = None,
    params: options.ParamFile = None,
    cross_check: Annotated[
        str | None,
        Parameter(
            help="Another exact solver, which solves again in the other half of the time; where the two prove what "
            "cannot both be true, the command fails and keeps the better plan."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        Parameter(help="Write the plan to this folder, or results to this .xlsx workbook; an earlier one is replaced."),
    ] = None,
    events: Annotated[
        Path | None, Parameter(help="Write each incumbent and bound as it comes, one JSON line each.")
    ] = None,
    log: Annotated[
        bool,
        options.flag("Say on stderr how the solver searches: settings, parameters, strategy, incumbents and bounds."),
    ] = False,
    strict: options.Strict = False,
    full: options.Full = False,
    json: options.Json = False,
    run: options.TheRun,
) -> Answer:
    """Find a plan, prove how good it is, verify it and show it.

    Without --solver, HiGHS and the problem's heuristic run side by side. Ctrl-C stops the search and keeps the best
    plan found so far (exit code 130); a second one leaves at once. --weight and --order change the objective of this
    solve, --limit its hard limits; the plan states them, and is verified by them.

        mast-opt solve my-instance --time-limit 60 --out my-plan
        mast-opt solve my-instance --solver cpsat --gap 0.01 --threads 8
        mast-opt solve my-instance --solver tetris --start my-plan --seed 7
        mast-opt solve my-instance --near last-weeks-plan
        mast-opt solve my-instance --from yesterdays-plan --out todays-plan
        mast-opt solve my-instance --start my-plan --freeze region=us-east,us-west --freeze dataset=clicks
        mast-opt solve my-instance --weight remote=500 --weight moved_work=1
        mast-opt solve my-instance --limit copied_tb=12 --limit moved_work=0.1
        mast-opt solve my-instance --order overload,remote,storage
        mast-opt solve my-instance --goal least-change
        mast-opt solve my-instance --goals --time-limit 180 --out plans
        mast-opt solve my-instance --solver highs --option mip_heuristic_effort=0.2
        mast-opt solve my-instance --solver highs --cross-check scip
        mast-opt solve my-fleet --solver ras --param price_steps=80 --param sub_mip.solver=scip
        mast-opt solve my-instance --solver tetris --log
        mast-opt solve plan-me.xlsx --out results.xlsx
        mast-opt solve my-instance --json | jq .objective
    """
    run.record["solver"] = solver
    own_options = _options(option or ())
    parts = options.parts_to_freeze(freeze or ())
    overrides = options.overrides_given(weight, order, limit)
    single: dict[str, object] = {"--goal": goal, "--weight": weight, "--order": order, "--start": start, "--log": log}
    single |= {"--events": events, "--cross-check": cross_check, "--option": option, "--param": param}
    single |= {"--params": params, "--iterations": iterations, "--freeze": freeze}
    single |= {"--formulation": formulation != "base", "--from": previous}
    _refuse_with_goals(single if goals else {})
    _refuse_with_from({"--start": start, "--near": near, "--cross-check": cross_check} if previous else {})
    if out is not None and events is not None and events.resolve().is_relative_to(out.resolve()):
        raise UsageError(f"--events {events} is inside --out {out}, which is replaced; choose another path")
    run.load()
    with run.phase("read", f"reading {path}"):
        reading = validate(path)
        problem = reading.problem
        run.record["kind"] = problem.kind
        chosen = options.params_given(reading.kind, solver, param, params)
        stated = overrides.applied_to(problem)
        run.warn(reading.warnings, strict=strict)
        begin = None if start is None else _earlier(run, problem, start).plan
        close = None if near is None else _near(run, problem, near, None if goals else overrides, goal)
        if out is not None:
            check_plan_target(problem, out)
            check_not_input(out, path, start, near, previous)
    left = _time_left(run, limits.time_limit, writes=out is not None)
    if left is not None and left <= 0:
        return _out_of_time(run, path, limits.time_limit)
    if goals:
        return _each_goal(run, problem, solver, replace(limits, time_limit=left), overrides.limits, close, out)
    with (
        Interrupt(run, "the best plan so far") as interrupt,
        EventLog(events) as event_log,
        SearchLog(run.say if log else None) as search_log,
        Progress(run.err, solver, limits.time_limit, run.elapsed_s, waiting="no plan yet") as progress,
    ):

        def on_event(event: Event) -> None:
            event_log(event)
            search_log(event)
            progress(event)

        contradiction = ""
        run.hear_compiler()
        try:
            solution = _solved(
                problem,
                solver,
                previous,
                iterations=iterations,
                start=begin,
                formulation=formulation,
                on_event=on_event,
                options=own_options,
                params=chosen,
                freeze=parts,
                weights=overrides.weights,
                order=overrides.order,
                goal=goal,
                limits=overrides.limits,
                cross_check=cross_check,
                near=close,
                **replace(limits, time_limit=left).keywords(interrupt.cancel),
            )
        except Contradiction as error:
            solution, contradiction = error.solution, f"{error}. Nothing is proven; please report it."
        if out is not None and solution.plan is not None:
            from mast_opt.planner.report.plan_files import write_plan

            write_plan(problem, solution, out)
    _say_lost(run, previous, solution.unmatched)
    if event_log.failure is not None:
        run.say(f"{events} is incomplete: {event_log.failure.strerror}", label="warning:")
    stated = solution.overrides.applied_to(problem) if goal else stated
    now: Any = replace(problem, objective=stated.objective)
    known = {} if interrupt.happened else _compared(run, problem, now, solution, limits, out)
    today = kind_of(now).analysis.current_state(now)
    return _answer(
        run, path, stated, solution, out, today, known, interrupted=interrupt.happened, full=full, fault=contradiction
    )


def _earlier(run: Run, problem: Problem[PlanT], path: Path) -> PlanReading[PlanT]:
    """The plan at a path as one to begin from or to stay near; what did not match is said."""
    reading = read_start(problem, path)
    _say_lost(run, path, reading.unmatched)
    return reading


def _near(run: Run, problem: Problem[PlanT], path: Path, overrides: Overrides | None, goal: str | None) -> PlanT:
    """The plan to stay near; it is said if it was solved by another objective than that of these overrides or goal."""
    reading = _earlier(run, problem, path)
    if overrides is not None:
        own = overrides if goal is None else stated_goal(problem, goal, {})
        words = other_objective(problem, reading.solved_with, own, goal)
        if words:
            run.say(f"{path} was solved {words} too, or rows differ for that reason", label="note:")
    return reading.plan


def _say_lost(run: Run, path: Path | None, unmatched: Sequence[str]) -> None:
    """Say which labels of an earlier plan found no match; those of none are said where it is read."""
    for words in unmatched if path is not None else ():
        run.say(
            f"{path} has labels that the instance does not have, and their rows are left out: {words}", label="note:"
        )


def _solved(problem: Problem[PlanT], solver: str, previous: Path | None, **asked: Any) -> Solution[PlanT]:  # noqa: ANN401 - arguments of ``solve``
    """The solution, from an earlier plan where there is one."""
    if previous is not None:
        for name in ("start", "near", "cross_check"):
            asked.pop(name)
        return resolve(problem, previous, None if solver == DEFAULT_SOLVER else solver, **asked)
    return solve(problem, solver, **asked)


def _refuse_with_goals(given: Mapping[str, object]) -> None:
    """Raises UsageError for options of a single solve."""
    unfit = [name for name, value in given.items() if value]
    if unfit:
        raise UsageError(f"--goals solves for each goal in turn; leave out {', '.join(unfit)}")


def _refuse_with_from(given: Mapping[str, object]) -> None:
    """Raises UsageError for options that an earlier plan takes the place of."""
    unfit = [name for name, value in given.items() if value]
    if unfit:
        raise UsageError(f"--from begins with its plan and stays near it; leave out {', '.join(unfit)}")


def _each_goal(
    run: Run,
    problem: Problem[PlanT],
    solver: str,
    limits: _Limits,
    most: Mapping[str, Fraction | None],
    near: PlanT | None,
    out: Path | None,
) -> Answer:
    """The plans of all goals, side by side."""
    from mast_opt.planner.analysis.goals import solve_goals
    from mast_opt.planner.report.result_sections import least_loss_words

    if out is not None and out.suffix:
        raise UsageError(f"--out {out}: expected a folder, which gets the plan of each goal in a folder of its name")
    with Interrupt(run, "the plans so far") as interrupt:
        run.compile(problem, solver, interrupt.cancel)
        with (
            run.phase("solve"),
            Progress(run.err, "goals", limits.time_limit, lines=True) as progress,
        ):
            asked = limits.keywords(interrupt.cancel)
            answer = solve_goals(problem, solver=solver, limits=most, near=near, on_event=progress, **asked)
    for name, solution in answer.solutions.items():
        if out is not None and solution.plan is not None:
            write_plan_folder(problem, solution, out / name, _judged(answer.figures, name))
    run.record.update(goal_keys(answer))
    outcomes = [exit_for(one.status) for one in answer.solutions.values()]
    code = Exit.INTERRUPTED if interrupt.happened else max(outcomes, key=bool, default=Exit.NO_PLAN)
    words = []
    for name, one in answer.solutions.items():
        proof = f"{one.outcome}, gap {percent(one.gap)}"
        if one.is_second_stage and name in answer.figures:
            loss = least_loss_words(answer.figures[name].loss, one.least_missing_gpus)
            proof = f"worst loss of a region: {loss}. With these replicas {proof}"
        words.append(f"{name}: {proof}" + (f"; {one.overrides.note}" if one.overrides.note else ""))
    words += [
        f"{name}: the plan of {other}, not proven to be the best by this goal; a longer --time-limit may find another."
        for name, other in answer.borrowed.items()
    ]
    words += [f"{name}: {reason}" for name, reason in answer.refused.items()]
    words += [
        f"{name}: {replace(one.overrides, weights={}, order=None)}."
        for name, one in answer.solutions.items()
        if one.overrides.single_copies
    ]
    words += [f"Recommended: {answer.lead}; the others show what further changes buy."] if answer.lead else []
    words.append("The plans were not saved; add --out DIR." if out is None else f"The plans are in {out}/GOAL.")

    def show(console: Console) -> None:
        from mast_opt.planner.report.result_sections import goal_sections
        from mast_opt.planner.report.terminal.sections import print_words, show_section

        for section in goal_sections(problem, answer.figures):
            show_section(console, section, None)
        console.print()
        for line in words:
            print_words(console, line)

    return Answer(code, show)


def _judged(figures: Mapping[str, Figures], name: str) -> dict[str, Any]:
    """Fields of ``plan.toml`` with the losses of regions that were judged today and for the plan of a name."""
    columns = {NOTHING: NOTHING, PLAN: name}
    return loss_fields({stored: figures[column].loss for stored, column in columns.items() if column in figures})


def check_not_input(out: Path, *inputs: Path | None) -> None:
    """Raises UsageError where the file to be written is one of those that are read."""
    for one in inputs:
        if one is not None and out.is_file() and one.exists() and out.samefile(one):
            raise UsageError(f"--out {out} is also read; choose another name, so that what you typed there stays")


def exit_for(status: Status) -> Exit:
    """The exit code for the outcome of a solve."""
    if status.has_solution:
        return Exit.OK
    if status.is_infeasible:
        return Exit.INFEASIBLE
    return Exit.UNEXPECTED if status is Status.UNBOUNDED else Exit.NO_PLAN


def _options(texts: Sequence[str]) -> tuple[tuple[str, OptionValue], ...]:
    """Options of a backend from ``--option NAME=VALUE``. Raises UsageError."""
    given = options.named_values("--option", texts, "mip_heuristic_effort=0.2")
    return tuple((name, _typed(value)) for name, value in given.items())


def _typed(text: str) -> OptionValue:
    """The value that is meant: solvers differ in the types that they take."""
    if text in ("true", "false"):
        return text == "true"
    for number in (int, float):
        with suppress(ValueError):
            return number(text)
    return text


def _time_left(run: Run, time_limit: float | None, *, writes: bool) -> float | None:
    """Seconds left for solving; a plan is taken to need as long to write as the instance took to read."""
    if time_limit is None:
        return None
    reserve = min(run.record["runtime_s"]["read"], 0.05 * time_limit) if writes else 0.0
    return time_limit - run.elapsed_s - reserve


def _out_of_time(run: Run, path: Path, time_limit: float | None) -> Answer:
    """End of ``mast-opt solve`` when reading has taken all of the time."""
    took = f"reading {path} took {run.record['runtime_s']['read']:.1f} s"
    words = f"{took}, so nothing is left of --time-limit {time_limit:g}; raise it"
    run.record.update(status=Status.NO_SOLUTION.value, limit="time", error=words)
    return Answer(Exit.NO_PLAN, lambda console: console.print(words, soft_wrap=True))


def _compared(
    run: Run,
    problem: Problem[PlanT],
    now: Problem[PlanT],
    solution: Solution[PlanT],
    limits: _Limits,
    out: Path | None,
) -> dict[str, Figures]:
    """Doing nothing and the plan, with the worst loss of a region of each if the time limit leaves time for that; the
    plan's folder is written again with these losses.

    Empty without a plan.
    """
    if solution.plan is None:
        return {}
    left_s = 2 * LOSS_S if limits.time_limit is None else limits.time_limit - run.elapsed_s
    judging: SolveLimits = {"time_limit_s": min(2 * LOSS_S, max(0.0, left_s)), "threads": limits.threads}
    with run.phase("verify", "judging the loss of each region"):
        found = figures_of(now, {PLAN: solution.plan}, with_steps=False, judging=judging)
    if out is not None and out.suffix.lower() != ".xlsx" and _judged(found, PLAN):
        write_plan_folder(problem, solution, out, _judged(found, PLAN))
    loss = found[PLAN].loss
    run.record["worst_region_loss"] = None if loss is None else loss.keys()
    return found


def _answer(
    run: Run,
    path: Path,
    problem: Problem[PlanT],
    solution: Solution[PlanT],
    out: Path | None,
    today: CurrentState | None,
    compared: Mapping[str, Figures],
    *,
    interrupted: bool,
    full: bool,
    fault: str,
) -> Answer:
    """End of ``mast-opt solve``: print the solution, write its record, and choose the exit code.

    Today is judged by the instance's own limits, not by those that this solve adds.
    """
    code = Exit.INTERRUPTED if interrupted else exit_for(solution.status)
    code = Exit.UNEXPECTED if fault else code
    elapsed_s = run.elapsed_s - solution.runtime_s["compile"]
    compile_s = run.record["runtime_s"]["compile"] + solution.runtime_s["compile"]
    runtime_s = run.record["runtime_s"] | dict(solution.runtime_s) | {"compile": compile_s}
    run.record.update(solution_keys(solution), runtime_s=runtime_s)
    kind = kind_of(problem)
    run.record["limits"] = {} if solution.plan is None else limit_keys(kind, problem, solution.plan)
    if run.json and solution.plan is not None:
        run.record.update(kind.presentation.facts(problem, solution.plan))
    run.record["today"] = today_keys(today)
    run.record["out"] = None if out is None or solution.plan is None else str(out)
    words = next_step(path, solution, out, interrupted=interrupted)
    words = f"{fault} {words}" if fault and solution.plan is not None else fault or words
    if code is not Exit.OK:
        run.record["error"] = f"interrupted. {words}" if interrupted else words

    def show(console: Console) -> None:
        from mast_opt.planner.report.result_sections import today_section
        from mast_opt.planner.report.terminal.sections import TOP_ROWS, print_words, show_section
        from mast_opt.planner.report.terminal.solution import show_solution

        show_solution(console, problem, solution, elapsed_s, None if full else TOP_ROWS, compared or None)
        if today is not None:
            show_section(console, today_section(today), None if full else TOP_ROWS)
        console.print()
        print_words(console, words)

    return Answer(code, show)
