"""The example package, installed: its heuristic and its policy are found, used and described like ours."""

from __future__ import annotations

import runpy
import tomllib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import mast_opt
from mast_opt.cli.exit_codes import Exit
from mast_opt.live.loop.actions import Actions
from mast_opt.live.loop.policy import CHANGES, EVERY_POLICY, NamedPolicy
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.planner.importers.base import Importer, Input, setting
from mast_opt.problems.job_placement.live_fleet.answers import Bid
from mast_opt.problems.registry import kind_named
from mast_opt.problems.search.interface import HeuristicSolver, Pricing, SearchResult
from mast_opt.problems.server_assignment.plan import Plan, today
from tests.cli.conftest import Call
from tests.plugins import offer
from tests.policies import conformance as policies
from tests.search import conformance as heuristics

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs/examples/plug-in"
TRACE = ROOT / "instances/traces/tiresias-60"


def install(example: Path, place: Path) -> None:
    """Do to a folder of packages what an installer does: a reference to the code, and its metadata."""
    stated = tomllib.loads((example / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    metadata = place / f"{stated['name'].replace('-', '_')}-{stated['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {stated['name']}\nVersion: {stated['version']}\n")
    points = (
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in named.items())
        for group, named in stated["entry-points"].items()
    )
    (metadata / "entry_points.txt").write_text("\n".join(points))


@pytest.fixture(autouse=True, scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    place = tmp_path_factory.mktemp("packages")
    install(EXAMPLE, place)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXAMPLE)
        patch.syspath_prepend(place)
        patch.setenv("PYTHONPATH", f"{place}:{EXAMPLE}:{ROOT}")
        yield


class TestHeuristic(heuristics.Conformance):
    kind, solver = "server-assignment", "hill-climb"
    sizes = {"servers": 20, "reservations": 2}  # noqa: RUF012


class TestPolicy(policies.Conformance):
    policy = "smallest-first"


def test_the_tests_of_the_example_pass(tmp_path: Path) -> None:
    tests = runpy.run_path(str(EXAMPLE / "tests/test_demo.py"))
    tests["test_hill_climb_improves_today"]()
    tests["test_smallest_first_places_the_smallest_first"](tmp_path)


@pytest.fixture
def fleet(call: Call, tmp_path: Path) -> Path:
    out = tmp_path / "fleet"
    call("generate", "server-assignment", out, "--servers", "20", "--reservations", "2")
    return out


def test_solve_takes_its_parameters_and_says_where_it_is_from(call: Call, fleet: Path) -> None:
    found = call("solve", fleet, "--solver", "hill-climb", "--iterations", "200", "--param", "patience=50", "--json")
    assert found.code == Exit.OK, found.err
    assert found.record["params"] == {"patience": 50}
    assert found.record["versions"]["hill-climb"] == "mast-opt-demo 0.1.0"


def test_simulate_runs_the_policy_alone_and_in_a_sweep(call: Call) -> None:
    one = call("simulate", TRACE, "--policy", "smallest-first", "--param", "alike_gpus=2", "--json")
    assert one.code == Exit.OK, one.err
    assert one.record["metrics"]["finished"] == 60
    assert one.record["params"]["alike_gpus"] == 2


def test_the_list_names_package_and_version(call: Call) -> None:
    found = {one["name"]: one for one in call("plug-ins", "--json").record["plug_ins"]}
    assert found.keys() == {"server-assignment.hill-climb", "smallest-first"}
    assert all((one["package"], one["reason"]) == ("mast-opt-demo 0.1.0", None) for one in found.values())
    assert "\nserver-assignment.hill-climb mast-opt-demo 0.1.0 (mast_opt.heuristics)" in "\n" + call("plug-ins").out


@pytest.mark.second_tier  # asks CBC for its version
def test_solvers_are_listed_with_their_package(call: Call) -> None:
    found = {one.name: one for one in mast_opt.solvers("server-assignment")}
    assert (found["hill-climb"].package, found["hill-climb"].exact) == ("mast-opt-demo 0.1.0", False)
    assert "hill-climb (mast-opt-demo 0.1.0)" in call("backends").out
    assert "patience = 500" in call("backends", "hill-climb").out


@pytest.mark.second_tier
def test_bench_measures_the_heuristic(call: Call, tmp_path: Path) -> None:
    suite = tmp_path / "mine.toml"
    suite.write_text(
        'title = "Ours and theirs"\ntime_limits_s = [5]\nseeds = [0]\nthreads = 1\n'
        '[contestants.climb]\nsolver = "hill-climb"\niterations = 50\n'
        '[[entry]]\nname = "drawn"\nkind = "server-assignment"\nfamily = "standard"\n'
        'sizes = { servers = 20, reservations = 2 }\ninstance_seeds = [1]\nsolvers = ["climb"]\n'
    )
    found = call("bench", suite, "--out", tmp_path / "results")
    assert found.code == Exit.OK, found.err
    (line,) = (tmp_path / "results/mine.jsonl").read_text().splitlines()
    assert '"hill-climb": "mast-opt-demo 0.1.0"' in line
    assert '"status": "FEASIBLE"' in line


def test_the_heuristic_of_the_page_solves(
    call: Call, fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs/how-to/plug-ins.md").read_text(encoding="utf-8")
    package, place = tmp_path / "package", tmp_path / "place"
    package.mkdir()
    place.mkdir()
    for name, language in (("climb.py", "python"), ("pyproject.toml", "toml")):
        (package / name).write_text(page.split(f"```{language}\n")[1].split("```")[0], encoding="utf-8")
    install(package, place)
    monkeypatch.syspath_prepend(package)
    monkeypatch.syspath_prepend(place)
    found = call("solve", fleet, "--solver", "climb", "--iterations", "100", "--json")
    assert found.code == Exit.OK, found.err
    assert found.record["versions"]["climb"] == "my-heuristics 0.1.0"


Offer = Callable[[str, str, str], None]


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch) -> Offer:
    return lambda group, name, value: offer(monkeypatch, f"mast_opt.{group}", (name, value))


def command(who: str) -> None:
    """Greet somebody."""
    print(f"Good day, {who}.")


@dataclass(frozen=True)
class DrawnSettings:
    servers: int = setting(10, "How many servers there are.")


def drawn(paths: Sequence[Path], settings: DrawnSettings, rng: np.random.Generator) -> mast_opt.ServerAssignment:
    assert settings.servers > 0, "no servers"
    return mast_opt.generate("server-assignment", seed=1, servers=settings.servers, reservations=1)


DRAWN = Importer("server-assignment", "Nothing real.", (Input("folder", "not looked at"),), DrawnSettings, drawn)


def test_a_command_of_another_package(call: Call, other: Offer) -> None:
    other("commands", "greet", f"{__name__}:command")
    assert call("greet", "all").out == "Good day, all.\n"
    assert "greet" in call("--help").out
    other("commands", "greet", "no_such_module:command")
    broken = call("greet", "all")
    assert broken.code == Exit.USAGE
    assert "the command greet of package demo 1.5 (no_such_module:command) cannot be loaded" in broken.err
    assert call("--version").code == Exit.OK


def test_a_broken_heuristic_ends_only_what_asks_for_it(call: Call, other: Offer, fleet: Path) -> None:
    other("heuristics", "server-assignment.broken", "no_such_module:X")
    found = call("solve", fleet, "--solver", "broken")
    assert found.code == Exit.USAGE
    assert "the heuristic server-assignment.broken of package demo 1.5 (no_such_module:X) cannot be loaded" in found.err
    assert call("solve", fleet, "--solver", "ras", "--iterations", "1").code == Exit.OK
    (listed,) = call("plug-ins", "--json").record["plug_ins"]
    assert "cannot be loaded" in listed["reason"]


def returning(result: Callable[[mast_opt.ServerAssignment], object]) -> HeuristicSolver:
    """A heuristic that returns a result without a search."""
    search: Any = lambda problem, tools, start: result(problem)  # noqa: E731
    return HeuristicSolver(search, Pricing(frozenset(mast_opt.ServerAssignment.WEIGHTS)))


UNSOUND = {
    "nothing": (returning(lambda p: None), "returned a NoneType; expected a SearchResult"),
    "nan": (
        returning(lambda p: SearchResult(today(p), float("nan"), None, "")),
        "states the bound nan; expected",
    ),
    "high": (
        returning(lambda p: SearchResult(today(p), 1e9, None, "")),
        "states the bound 1e+09, but its own plan",
    ),
    "list": (returning(lambda p: SearchResult([1, 2], None, None, "")), "returned a plan of type list; expected"),
    "short": (returning(lambda p: SearchResult(Plan(np.zeros(3, int)), None, None, "")), "does not fit the problem"),
}
"""Name → a heuristic whose result is none, and how the error begins."""
NOTHING, NAN, HIGH, LIST, SHORT = (solver for solver, _ in UNSOUND.values())
STATED = returning(lambda p: SearchResult(today(p), 0.0, None, ""))
ORDERED = replace(returning(lambda p: SearchResult(today(p), None, None, "")), orders=True)


@pytest.mark.parametrize("name", UNSOUND)
def test_what_is_no_result_names_the_package(call: Call, other: Offer, fleet: Path, name: str) -> None:
    other("heuristics", "server-assignment.odd", f"{__name__}:{name.upper()}")
    found = call("solve", fleet, "--solver", "odd")
    assert found.code == Exit.USAGE
    words = " ".join(found.err.split())
    assert f"the heuristic server-assignment.odd of package demo 1.5 ({__name__}:{name.upper()})" in words
    assert UNSOUND[name][1] in words


def test_a_bound_without_a_certificate_is_said_to_be_unchecked(call: Call, other: Offer, fleet: Path) -> None:
    other("heuristics", "server-assignment.odd", f"{__name__}:STATED")
    found = call("solve", fleet, "--solver", "odd")
    assert found.code == Exit.OK
    assert "the bound has no certificate: it is what demo 1.5 states" in " ".join(found.out.split())


def test_an_order_is_for_those_that_say_so(call: Call, other: Offer, fleet: Path) -> None:
    order = ("--order", "shortfall,moves_in_use,moves_idle,use")
    refused = call("solve", fleet, "--solver", "hill-climb", "--iterations", "5", *order)
    assert refused.code == Exit.USAGE
    assert "hill-climb minimises a weighted sum; this objective is an order of terms" in " ".join(refused.err.split())
    other("heuristics", "server-assignment.odd", f"{__name__}:ORDERED")
    taken = call("solve", fleet, "--solver", "odd", *order)
    assert taken.code == Exit.OK, taken.err
    assert "searched by weights, not in the order shortfall" in " ".join(taken.out.split())  # it has no stages


@dataclass(frozen=True)
class NoParams:
    """None."""


class Twice:
    """A policy that commits a bid twice."""

    name: str = "twice"
    reacts_to: ClassVar[frozenset[type]] = CHANGES
    reads: frozenset[str] = EVERY_POLICY
    every_ms: int | None = None

    def begin(self, snapshot: Snapshot) -> None:
        """Nothing is kept."""

    def decide(self, snapshot: Snapshot, actions: Actions) -> None:
        for record in list(snapshot.jobs.values()):
            if record.waits and isinstance(bid := actions.place(record.name, preempt=False), Bid):
                actions.commit(bid)
                actions.commit(bid)


TWICE = NamedPolicy(NoParams, lambda params, speeds: Twice())


def test_an_error_of_a_policy_names_it(call: Call, other: Offer) -> None:
    other("policies", "twice", f"{__name__}:TWICE")
    found = call("simulate", TRACE, "--policy", "twice")
    assert found.code == Exit.USAGE
    words = " ".join(found.err.split())
    assert f"the policy twice of package demo 1.5 ({__name__}:TWICE) failed" in words
    assert "only a queued job can be placed" in words


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("server-assignment.ras", "has the name of another solver"),
        ("server-assignment.highs", "has the name of another solver"),
        ("no-kind.mine", "is for no kind of problem"),
    ],
)
@pytest.mark.filterwarnings("ignore::mast_opt.core.errors.PluginWarning")
def test_a_heuristic_that_is_not_used_says_why(call: Call, other: Offer, name: str, reason: str) -> None:
    other("heuristics", name, "mast_opt_demo.heuristic:HILL_CLIMB")
    (listed,) = call("plug-ins", "--json").record["plug_ins"]
    assert reason in listed["reason"]


def test_a_policy_with_a_taken_name_is_said(other: Offer) -> None:
    other("policies", "mast", "mast_opt_demo.policy:SMALLEST_FIRST")
    with pytest.warns(mast_opt.PluginWarning, match="the policy mast of package demo 1.5"):
        assert mast_opt.simulate(TRACE, "mast").policy == "mast"


def test_a_warning_of_a_taken_name_is_given_once(other: Offer) -> None:
    other("heuristics", "server-assignment.ras", "mast_opt_demo.heuristic:HILL_CLIMB")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        kind_named("server-assignment")
        for _ in range(2):
            mast_opt.generate("server-assignment", seed=1, servers=5, reservations=1)
    (one,) = found
    assert "the heuristic server-assignment.ras of package demo 1.5" in str(one.message)
    assert one.filename == "plug-ins", "no line of source is shown with it"


def test_an_importer_of_another_package(call: Call, other: Offer, tmp_path: Path) -> None:
    other("importers", "drawn", f"{__name__}:DRAWN")
    (tmp_path / "in").mkdir()
    found = call("import", "drawn", tmp_path / "in", tmp_path / "out", "--servers", "4")
    assert found.code == Exit.OK, found.err
    assert len(mast_opt.read(tmp_path / "out").servers) == 4
    failed = call("import", "drawn", tmp_path / "in", tmp_path / "other", "--servers", "0")
    assert failed.code == Exit.USAGE
    assert "the importer drawn of package demo 1.5" in failed.err
    assert "failed: AssertionError: no servers" in failed.err
