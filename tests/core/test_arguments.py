"""Wrong arguments of public functions and constructors end in an error of mast_opt, never in one from inside."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pytest

import mast_opt
from mast_opt.core.arguments import COMMON, a_whole, checked
from mast_opt.core.errors import MastOptError, PlanError, UsageError
from mast_opt.core.solve_limits import SolveControl, SolveLimits, TimeLimits, keywords_of
from mast_opt.problems.data_placement.entities import STORAGE, Candidates
from mast_opt.problems.registry import kind_named

WRONG: dict[str, Any] = {
    "nothing": None,
    "a number": 3,
    "a negative number": -1,
    "a fraction": 2.5,
    "not a number": math.nan,
    "infinity": math.inf,
    "a flag": True,
    "a text": "x",
    "an empty text": "",
    "a text that no path can be": "a\0b",
    "bytes": b"x",
    "a list": [3],
    "a list of lists": [[3]],
    "an empty tuple": (),
    "a mapping": {"x": [3]},
    "a mapping of numbers": {3: "x"},
    "a mapping of texts": {"x": "y"},
    "an array": np.arange(3),
    "an object": object(),
    "a class": int,
}
SERVERS = [mast_opt.Server("s1", "eu", "c1", "r1", "A100", 8, 1000, 1000)]
FLEETS = (
    *("place", "bids", "explain", "commit", "release", "set_at_risk", "fail", "cordon", "uncordon", "drain"),
    *("add_servers", "remove_server", "replace_server", "replace_servers", "set_replicas", "shares"),
    *("job", "jobs_on", "place_and_commit", "set_quota", "adopt", "resize", "set_capacity"),
    *("set_search_limits", "defragment", "apply", "count_arrival", "importance_of", "is_over_quota"),
    *("short_of_quota", "most_mgpu", "set_reclaim", "fits_by", "set_work", "look_at_work", "bid_on"),
)
KINDS = ("data-placement", "job-placement", "server-assignment", "task-reassignment")
"""Those whose problems have heuristics of their own, which take parameters."""
SMALL_TRACE = Path(__file__).parents[2] / "instances" / "traces" / "philly-small"
SMALL = {
    "data-placement": {"datasets": 4, "workloads": 4, "regions": 2},
    "job-placement": {"jobs": 3},
    "server-assignment": {"servers": 12},
    "task-reassignment": {"processes": 8, "machines": 4},
}


def given(value: object) -> Any:
    """A value that a type checker would refuse as this argument."""
    return value


def _as_it_is(call: tuple[Any, dict[str, Any]]) -> tuple[Any, dict[str, Any]]:
    return call


def disks() -> Candidates:
    """Storage in the first region of ``problem()``, for sale."""
    one = np.array([1])
    return Candidates(("disks",), one * STORAGE, one * 0, one * 2, one * 2, one, one, one, one)


@cache
def problem(kind: str = "data-placement", seed: int = 0) -> Any:
    return mast_opt.generate(kind, None, seed=seed, **SMALL[kind])


@cache
def solution(kind: str = "data-placement", seed: int = 0) -> Any:
    return mast_opt.solve(problem(kind, seed), gap=0.9)


@cache
def frontier() -> Any:
    return mast_opt.pareto(problem(), ("storage", "peak"), points=2, time_limit_s=5.0, threads=1)


def good(folder: Path) -> dict[str, Callable[[], tuple[Any, dict[str, Any]]]]:
    """Public callable → itself and arguments with which it works, made again for each call."""
    plan = solution().plan
    scenario = mast_opt.Scenario("more", {"grow_demand": {"all": 1.1}})
    work = {"time_limit_s": 5.0, "threads": 1}
    mast_opt.write(problem(), folder / "read", force=True)
    mast_opt.write_plan(problem(), solution(), folder / "plan")
    (folder / "what-if.toml").write_text('[[scenario]]\nname = "more"\ngrow_demand = { all = 1.1 }\n')
    (folder / "periods.toml").write_text('[[period]]\nname = "later"\ngrow_demand = { all = 1.1 }\n')
    job = mast_opt.Job("j", 0)

    def fleet(method: str) -> Callable[[], tuple[Any, dict[str, Any]]]:
        def made() -> tuple[Any, dict[str, Any]]:
            live = mast_opt.Fleet(SERVERS, tiers=(0, 1))
            live.commit(live.place(mast_opt.Job("runs", 0)))  # type: ignore[arg-type]
            given: dict[str, Any] = {
                "job": job,
                "bid": live.place(job),
                "name": "runs",
                "gpu_hours": 1.0,
                "server": "s1",
                "servers": [],
                "dataset": "d",
                "regions": ["eu"],
                "residency": None,
                "avoid": [],
                "victims": [],
                "arrives": True,
                "started_ms": 5,
                "now_ms": 5,
                "began_ms": 2,
                "checkpoint_ms": 3,
                "preempt": True,
                "tenant": "t",
                "mgpu": 1000,
                "borrowing": 1000,
                "lending": None,
                "parent": None,
                "gpu_type": None,
                "shares": (mast_opt.Share("s1", 1, {0: 1000}),),
                "limits": mast_opt.SearchLimits(),
                "tasks": 1,
                "reclaim": "any",
                "gpus": 8,
                "cpu_mcores": None,
                "memory_mib": None,
                "budget": mast_opt.MoveBudget(),
                "waiting": [mast_opt.Job("waits", 0)],
                "movable": {"runs": 1.0},
                "plan": live.defragment(mast_opt.MoveBudget(), [mast_opt.Job("waits", 0)]),
            }
            called = getattr(live, method)
            return called, {name: given[name] for name in inspect.signature(called).parameters}

        return made

    calls: dict[str, tuple[Any, dict[str, Any]]] = {
        "Fleet": (mast_opt.Fleet, {"servers": SERVERS}),
        "Fleet.of": (mast_opt.Fleet.of, {"problem": problem("job-placement")}),
        "Job": (mast_opt.Job, {"name": "j", "tier": 0}),
        "Job.of": (mast_opt.Job.of, {"problem": problem("job-placement"), "j": 0}),
        "Part": (mast_opt.Part, {"name": "p"}),
        "Server": (mast_opt.Server, {name: getattr(SERVERS[0], name) for name in mast_opt.Server.__slots__})
        if hasattr(mast_opt.Server, "__slots__")
        else (mast_opt.Server, dict(vars(SERVERS[0]))),
        "MoveBudget": (mast_opt.MoveBudget, {"moves": 1, "gpu_hours": 1.0}),
        "Scenario": (mast_opt.Scenario, {"name": "more"}),
        **{name: (getattr(mast_opt, name), {}) for name in PARAMS},
        "buy": (mast_opt.buy, {"problem": replace(problem(), candidates=disks()), **work}),
        "checksum": (mast_opt.checksum, {"problem": problem()}),
        "diff": (mast_opt.diff, {"problem": problem(), "before": plan, "after": plan}),
        "explain": (mast_opt.explain, {"problem": problem(), "plan": plan}),
        "export": (mast_opt.export, {"problem": problem(), "path": folder / "program.lp", "force": True}),
        "formulate": (mast_opt.formulate, {"problem": problem()}),
        "from_tables": (mast_opt.from_tables, {"kind": "data-placement", "tables": mast_opt.to_tables(problem())}),
        "generate": (mast_opt.generate, {"kind": "data-placement", "datasets": 3, "workloads": 3, "regions": 2}),
        "marginal_values": (
            mast_opt.marginal_values,
            {"problem": problem(), "plan": plan, "resources": ["storage"], **work},
        ),
        "pareto": (mast_opt.pareto, {"problem": problem(), "terms": ("storage", "peak"), "points": 2, **work}),
        "plan_from_tables": (
            mast_opt.plan_from_tables,
            {"problem": problem(), "tables": mast_opt.to_tables(problem(), plan)},
        ),
        "plan_periods_jointly": (
            mast_opt.plan_periods_jointly,
            {"problem": problem(), "periods": [scenario], "gap": 0.9, **work},
        ),
        "buy_in_time": (
            mast_opt.buy_in_time,
            {"problem": replace(problem(), candidates=disks()), "periods": [scenario], **work},
        ),
        "solve_goals": (mast_opt.solve_goals, {"problem": problem(), "gap": 0.9, **work}),
        "plan_periods": (mast_opt.plan_periods, {"problem": problem(), "periods": [scenario], "gap": 0.9, **work}),
        "read_periods": (mast_opt.read_periods, {"path": folder / "periods.toml"}),
        "plot_frontier": (mast_opt.plot_frontier, {"frontier": frontier()}),
        "plot_plan": (mast_opt.plot_plan, {"problem": problem(), "plan": plan}),
        "plot_run": (mast_opt.plot_run, {"run": mast_opt.simulate(SMALL_TRACE, "fifo", until_s=1e6)}),
        "plot_search": (mast_opt.plot_search, {"solution": solution()}),
        "read": (mast_opt.read, {"path": folder / "read"}),
        "read_plan": (mast_opt.read_plan, {"problem": problem(), "path": folder / "plan"}),
        "read_scenarios": (mast_opt.read_scenarios, {"path": folder / "what-if.toml"}),
        "risk": (mast_opt.risk, {"problem": problem(), "plan": plan}),
        "read_trace": (mast_opt.read_trace, {"path": SMALL_TRACE}),
        "simulate": (mast_opt.simulate, {"trace": SMALL_TRACE, "policy": "fifo"}),
        "resolve": (mast_opt.resolve, {"problem": problem(), "previous": solution(), "gap": 0.9, **work}),
        "solve": (mast_opt.solve, {"problem": problem(), "gap": 0.9, **work}),
        "solvers": (mast_opt.solvers, {"kind": "data-placement"}),
        "to_tables": (mast_opt.to_tables, {"given": problem(), "plan": plan}),
        "validate": (mast_opt.validate, {"given": folder / "read"}),
        "write_program": (
            mast_opt.write_program,
            {"mip": mast_opt.formulate(problem()), "path": folder / "program.mps", "force": True},
        ),
        "steps": (mast_opt.steps, {"problem": problem(), "plan": plan}),
        "verify": (mast_opt.verify, {"problem": problem(), "plan": plan}),
        "warm_up": (mast_opt.warm_up, {}),
        "whatif": (mast_opt.whatif, {"problem": problem(), "scenarios": [scenario], "gap": 0.9, **work}),
        "write": (mast_opt.write, {"problem": problem(), "path": folder / "written", "force": True}),
        "write_plan": (
            mast_opt.write_plan,
            {"problem": problem(), "solution": solution(), "path": folder / "plan-2"},
        ),
        "write_report": (
            mast_opt.write_report,
            {"problem": problem(), "plan": plan, "path": folder / "page.html", "force": True},
        ),
        "write_template": (
            mast_opt.write_template,
            {"kind": "data-placement", "path": folder / "template.xlsx", "force": True},
        ),
        "write_workbook": (
            mast_opt.write_workbook,
            {"problem": problem(), "plan": plan, "path": folder / "results.xlsx", "notes": ["a note"]},
        ),
    }
    made: dict[str, Callable[[], tuple[Any, dict[str, Any]]]] = {
        name: partial(_as_it_is, call) for name, call in calls.items()
    }
    return made | {f"Fleet.{method}": fleet(method) for method in FLEETS}


PLAIN = {
    "InstanceError",
    "PlanError",
    "Fault",
    "Diff",
    "Explanation",
    "Frontier",
    "Marginals",
    "Periods",
    "Purchases",
    "WhatIf",
    "Solution",
}
PLAIN |= {"Goals", "PurchasesInTime", "Reading", "SolverInfo", "SolveLimits", "SolveRun"}
PLAIN |= {"Stage", "Event", "Order", "Verdict", "Violation", "Conflict", "Bid", "Refused", "Limit", "Status"}
PLAIN |= {"JobMove", "MovePlan", "JobTrace", "Metrics", "Simulation", "Figure", "JointPeriods", "CrossCheck", "Reuse"}
"""What mast_opt makes and callers only read."""
CONSTRUCTORS = {"DataPlacement", "JobPlacement", "ServerAssignment", "TaskReassignment"}
CONSTRUCTORS |= {"ResourceAllocation"}
"""See ``test_constructors``."""
OTHERS = {"import_instance", "import_trace", "start", "FillSampling", "SearchLimits", "Share"}
"""Takes files of many sorts, see ``tests/importers``; takes the arguments of ``solve``; are checked by ``Fleet``."""
PARAMS = sorted({cls.__name__ for name in KINDS for cls in kind_named(name).solvers.params.values()})
PARAMS += ["AllocationParams", "AutoParams", "BuyParams"]
"""Classes of the parameters of solvers."""
NAMES = [
    *PARAMS,
    *(
        "Fleet",
        "Fleet.of",
        "Job",
        "Job.of",
        "Server",
        "MoveBudget",
        "Part",
        "Scenario",
        "buy",
        "buy_in_time",
        "solve_goals",
        "plan_periods",
        "plan_periods_jointly",
        "read_periods",
        "checksum",
        "diff",
        "explain",
        "generate",
    ),
    *("export", "formulate", "from_tables", "plan_from_tables", "solvers", "to_tables", "validate", "write_program"),
    *("marginal_values", "pareto", "read", "read_plan", "read_scenarios", "resolve", "risk", "solve", "steps"),
    *("read_trace", "simulate", "plot_frontier", "plot_plan", "plot_run", "plot_search"),
    *("verify", "warm_up", "whatif", "write", "write_plan", "write_report", "write_template", "write_workbook"),
    *(f"Fleet.{method}" for method in FLEETS),
]


def test_nothing_public_is_left_out() -> None:
    errors = {name for name in mast_opt.__all__ if inspect.isclass(getattr(mast_opt, name))}
    errors = {name for name in errors if issubclass(getattr(mast_opt, name), Exception)}
    assert {name for name in NAMES if "." not in name} == set(mast_opt.__all__) - PLAIN - CONSTRUCTORS - OTHERS - errors
    methods = {name for name, _ in inspect.getmembers(mast_opt.Fleet, inspect.isfunction) if not name.startswith("_")}
    with_arguments = {name for name in methods if len(inspect.signature(getattr(mast_opt.Fleet, name)).parameters) > 1}
    assert with_arguments == set(FLEETS)


def wrongs(name: str, function: Any, given: dict[str, Any]) -> Iterator[tuple[str, str, tuple[Any, ...], Any]]:
    """(parameter, what is wrong, positional arguments, keywords) for every call with one wrong argument."""
    for parameter in inspect.signature(function).parameters.values():
        for what, value in WRONG.items():
            if parameter.kind is parameter.VAR_POSITIONAL:
                yield parameter.name, what, (value,), given
            elif parameter.kind is parameter.VAR_KEYWORD:
                yield parameter.name, what, (), given | {"datasets": value}
            else:
                others = ("no-such-kind",) if name == "warm_up" else ()  # so that it compiles nothing
                yield parameter.name, what, others, given | {parameter.name: value}


def harmless(parameter: str, what: str) -> bool:
    """Not tried: it works and writes into the working directory, is a function whose own failure ends the call, or is
    handed to ``solve`` as it is.
    """
    if parameter in ("on_event", "on_outcome", "on_period"):
        return what == "a class"
    return parameter == "asked" or (parameter in ("path", "picture") and what in ("a text", "an empty text"))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.second_tier) if name == "solvers" else name for name in NAMES]
)
def test_wrong_arguments_are_errors_of_ours(name: str, tmp_path: Path) -> None:
    make = good(tmp_path)[name]
    for parameter, what, given, keywords in wrongs(name, *make()):
        if harmless(parameter, what):
            continue
        function, fresh = make()
        if not given:
            keywords = fresh | {parameter: keywords[parameter]} if parameter in keywords else keywords
        positional_only = [
            p.name
            for p in inspect.signature(function).parameters.values()
            if p.kind is p.POSITIONAL_ONLY and p.name in keywords
        ]
        given = (*given, *(keywords.pop(one) for one in positional_only))
        try:
            with suppress(MastOptError):
                function(*given, **keywords)
        except Exception as error:
            raise AssertionError(f"{name}({parameter}={what}) ends in {type(error).__name__}: {error}") from error


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: mast_opt.read(given(3)), "path is 3; expected a path"),
        (lambda: mast_opt.read(given(None)), "path is None; expected a path"),
        (lambda: mast_opt.write(problem(), given(3)), "path is 3; expected a path"),
        (
            lambda: mast_opt.solve(problem(), time_limit_s=given("5")),
            "time_limit_s is '5'; expected a number of seconds above 0",
        ),
        (lambda: mast_opt.solve(problem(), time_limit_s=math.inf), "time_limit_s is inf; expected a number of seconds"),
        (lambda: mast_opt.solve(problem(), gap=given("x")), "gap is 'x'; expected a finite number of at least 0"),
        (lambda: mast_opt.solve(problem(), freeze=given(3)), "freeze is 3; expected a mapping with str as keys"),
        (lambda: mast_opt.solve(problem(), seed=True), "seed is True; expected a whole number from 0"),
        (lambda: mast_opt.solve(problem(), cancel=given(3)), "cancel is 3; expected a threading.Event"),
        (
            lambda: mast_opt.write_plan(problem(), given(None), "x"),
            "solution is None; expected the Solution of",
        ),
        (lambda: mast_opt.generate("data-placement", datasets=given("3")), "datasets is '3'; expected a whole number"),
        (lambda: mast_opt.Fleet([given(3)]), r"servers\[0\] is 3; expected a Server"),
        (lambda: mast_opt.whatif(problem(), [given(3)]), r"scenarios\[0\] is 3; expected a Scenario"),
        (lambda: mast_opt.pareto(problem(), "storage,peak"), "terms: 'storage,peak' is one string; expected a coll"),
    ],
)
def test_the_error_says_what_was_expected(call: Callable[[], object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        call()


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_of_another_instance_is_refused_wherever_one_comes_in(kind: str, tmp_path: Path) -> None:
    larger = {name: 2 * size for name, size in SMALL[kind].items()}
    other = mast_opt.generate(kind, None, seed=5, **larger)
    plan = solution(kind).plan
    assert plan is not None
    calls: list[Callable[[], object]] = [
        lambda: mast_opt.write_plan(other, solution(kind), tmp_path / "plan"),
        lambda: mast_opt.write_report(other, plan, tmp_path / "page.html"),
        lambda: mast_opt.plot_plan(other, plan),
        lambda: mast_opt.verify(other, plan),
        lambda: mast_opt.diff(other, plan, plan),
        lambda: mast_opt.explain(other, plan),
    ]
    if kind == "data-placement":
        scenario = mast_opt.Scenario("more", {"grow_demand": {"all": 1.1}})
        calls += [
            lambda: mast_opt.risk(other, plan),
            lambda: mast_opt.steps(other, plan),
            lambda: mast_opt.whatif(other, [scenario], plan),
            lambda: mast_opt.marginal_values(other, plan),
        ]
    for call in calls:
        with pytest.raises(PlanError, match="does not fit this instance"):
            call()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_that_fits_another_instance_is_not_written_under_it(kind: str, tmp_path: Path) -> None:
    other = problem(kind, seed=1)
    with pytest.raises(PlanError, match="does not fit this instance"):
        mast_opt.write_plan(other, solution(kind), tmp_path / "plan")
    assert list(tmp_path.iterdir()) == []
    mast_opt.write_plan(other, solution(kind, seed=1), tmp_path / "plan")


@pytest.mark.parametrize("name", COMMON)
def test_common_arguments_are_checked_without_being_named(name: str) -> None:
    @checked()
    def function(  # type: ignore[no-untyped-def]
        solver=0, formulation=0, time_limit_s=0, gap=0, seed=0, threads=0, iterations=0, jobs=0, cancel=0, on_event=0
    ):
        return "called"

    assert function() == "called"
    with pytest.raises(UsageError, match=f"^{name} is a object, "):
        function(**{name: object()})


@checked(keywords_of(SolveLimits, gap=0.5))
def limited(one: int = 1, **limits: Unpack[SolveLimits]) -> tuple[int, SolveLimits]:
    return one, limits


def test_a_class_of_limits_gives_a_function_its_keywords_defaults_and_checks() -> None:
    defaults = {"time_limit_s": None, "gap": 0.5, "seed": 0, "threads": None, "cancel": None}
    assert limited() == (1, defaults)
    assert limited(2, gap=0.1, seed=7) == (2, defaults | {"gap": 0.1, "seed": 7})
    listed = inspect.signature(limited).parameters
    assert {name: one.default for name, one in listed.items()} == {"one": 1} | defaults
    with pytest.raises(UsageError, match="gap is -1"):
        limited(gap=-1)
    with pytest.raises(TypeError, match="'tme_limit_s'; did you mean 'time_limit_s'"):
        limited(tme_limit_s=3)  # type: ignore[call-arg]


def test_a_keyword_of_another_class_of_limits_is_refused() -> None:
    with pytest.raises(TypeError, match="iterations"):
        limited(iterations=3)  # type: ignore[call-arg]


def test_every_function_that_takes_limits_takes_those_of_their_class() -> None:
    """Each of them states the names once; what one takes in addition is in a class of its own."""
    found = {name: set(inspect.signature(getattr(mast_opt, name)).parameters) for name in NAMES if "." not in name}
    taken = {
        name: names & set(SolveControl.__annotations__) for name, names in found.items() if "time_limit_s" in names
    }
    assert taken.pop("solve") == set(SolveControl.__annotations__)
    assert taken.pop("solve_goals") == set(SolveControl.__annotations__)
    assert taken.pop("resolve") == {"time_limit_s", "gap", "iterations"}
    assert taken.pop("buy_in_time") == {*SolveLimits.__annotations__, "on_event"}
    assert taken.pop("explain") == set(TimeLimits.__annotations__)
    assert len(taken) == 6
    assert all(names == set(SolveLimits.__annotations__) for names in taken.values())


def test_a_check_that_is_named_comes_before_the_common_one() -> None:
    @checked(seed=a_whole(0))
    def function(seed: int) -> int:
        return seed

    assert function(2**40) == 2**40
    with pytest.raises(UsageError, match="seed is -1; expected at least 0"):
        function(-1)
