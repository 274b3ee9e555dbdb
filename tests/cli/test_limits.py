"""Limits on a whole plan: in files, ``--limit``, and what every command makes of them."""

from __future__ import annotations

import io
import tomllib
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import mast_opt
from mast_opt.core.solve_result import Limit, SolveParams, SolveResult, Status
from mast_opt.planner.analysis.infeasibility.elastic_program import Elastic
from mast_opt.planner.analysis.infeasibility.repairs import RepairSearch, price_list
from mast_opt.planner.io import checksum
from mast_opt.planner.report.terminal.analysis import show_explanation
from mast_opt.planner.solving.clock import Clock
from mast_opt.problems import backends
from mast_opt.problems.data_placement.analysis.elastic_program import relief
from mast_opt.problems.mip import Mip
from tests.cli.conftest import Call, write_tables
from tests.narrowing import some

PULLED = {
    "regions.csv": "region,storage_tb,cpu_cores\neast,10,10\nwest,10,10\n",
    "gpu_supply.csv": "region,gpu_type,gpus\neast,A100,1\nwest,A100,40\n",
    "current_runs.csv": "workload,region,gpu_type,share\nrank,east,A100,1\nspam,west,A100,1\n",
}
"""All GPUs are in the west: the work of the east moves there, with its data (3 TB)."""


@pytest.fixture
def pulled(tmp_path: Path) -> Path:
    return write_tables(tmp_path / "pulled", PULLED)


def test_a_limit_binds_and_the_plan_is_verified_with_it(call: Call, pulled: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    free = call("solve", pulled, "--json").record
    assert free["metrics"]["copied_tb"] == 3
    ended = call("solve", pulled, "--limit", "copied_tb=2.5", "--limit", "moved_work=1/2", "--out", plan, "--json")
    assert ended.code == 0
    assert ended.record["metrics"]["copied_tb"] == 0
    assert ended.record["terms"]["moved_work"] <= 0.5
    assert ended.record["limits"]["copied_tb"] == {"used": 0, "most": 2.5, "unit": "TB"}
    assert ended.record["limits"]["moved_work"]["used"] == pytest.approx(ended.record["terms"]["moved_work"])
    assert ended.record["objective"] > free["objective"]
    assert ended.record["overrides"] == {"limits": {"copied_tb": 2.5, "moved_work": 0.5}}
    assert tomllib.loads((plan / "plan.toml").read_text())["overrides"] == ended.record["overrides"]
    checked = call("verify", pulled, plan, "--json")
    assert checked.code == 0
    assert checked.record["limits"] == ended.record["limits"]
    free_plan = tmp_path / "free"
    call("solve", pulled, "--out", free_plan)
    stated = (free_plan / "plan.toml").read_text()
    (free_plan / "plan.toml").write_text(f"{stated}\n[overrides.limits]\ncopied_tb = 2.5\n")
    broken = call("verify", pulled, free_plan, "--json")
    assert broken.code == 5
    assert broken.record["violations"] == [
        {"constraint": "limit", "index": ["copied_tb"], "amount": 5e5, "limit": 2.5e6, "unit": "MB"}
    ]


@pytest.mark.parametrize("suffix", ["", ".xlsx", ".json"])
def test_limits_of_an_instance_in_every_format(call: Call, pulled: Path, tmp_path: Path, suffix: str) -> None:
    (pulled / "instance.toml").write_text(
        (pulled / "instance.toml").read_text() + '[limits]\ncopied_tb = 2.5\nmoves = "10/3"\n'
    )
    problem = mast_opt.read(pulled)
    assert problem.limits == {"copied_tb": Fraction(5, 2), "moves": Fraction(10, 3)}
    mast_opt.write(problem, tmp_path / f"copy{suffix}")
    again = mast_opt.read(tmp_path / f"copy{suffix}")
    assert again == problem
    assert checksum(again) == checksum(problem) != checksum(problem.with_limits({"moves": 3}))
    shown = call("solve", tmp_path / f"copy{suffix}")
    assert "Limits on the whole plan" in shown.out
    assert (
        call("solve", tmp_path / f"copy{suffix}", "--limit", "copied_tb=none", "--json").record["metrics"]["copied_tb"]
        == 3
    )


def test_a_checksum_without_limits_is_as_before(pulled: Path) -> None:
    problem = mast_opt.read(pulled)
    assert checksum(problem.with_limits({"moves": 3}).with_limits({"moves": None})) == checksum(problem)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("[limits]\ncopied = 1", "did you mean 'copied_tb'?"),
        ("[limits]\ncopied_tb = -1", "a number from 0 to 1e+18 (TB)"),
        ("[limits]\ncopied_tb = nan", "a number from 0 to 1e+18 (TB)"),
        ("[limits]\ncopied_tb = 'many'", "a number from 0 to 1e+18 (TB)"),
        ("[limits]\ncopied_tb = true", "a number from 0 to 1e+18 (TB)"),
        ("limits = 3", "a table, [limits]"),
    ],
)
def test_limits_that_make_no_sense(call: Call, tmp_path: Path, lines: str, words: str) -> None:
    ended = call("validate", write_tables(tmp_path / "wrong", settings=f"{lines}\n"))
    assert ended.code == 2
    assert words in ended.err


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("copied=1", "no limit called 'copied'; expected some of: copied_tb, copy"),
        ("copied_tb=-1", "expected a number of at least 0, or none"),
        ("copied_tb", "expected NAME=VALUE, as in --limit copied_tb=12"),
    ],
)
def test_limits_that_cannot_be_asked_for(call: Call, instance: Path, option: str, words: str) -> None:
    ended = call("solve", instance, "--limit", option)
    assert ended.code == 2
    assert words in ended.err.replace("\n", " ")


@pytest.mark.parametrize("kind", ["job-placement", "server-assignment", "task-reassignment", "resource-allocation"])
def test_other_kinds_have_no_limits_on_a_whole_plan(call: Call, tmp_path: Path, kind: str) -> None:
    mast_opt.write(mast_opt.generate(kind, seed=1), tmp_path / "other")
    ended = call("solve", tmp_path / "other", "--limit", "moves=1")
    assert ended.code == 2
    assert "limits on a whole plan are for data-placement" in ended.err.replace("\n", " ")
    head = tmp_path / "other" / "instance.toml"
    head.write_text(head.read_text() + "\n[limits]\nmoves = 1\n")
    ended = call("validate", tmp_path / "other")
    assert ended.code == 2
    assert "limits on a whole plan are for data-placement" in ended.err.replace("\n", " ")


def test_explain_names_the_limit_and_the_least_that_is_feasible(call: Call, tmp_path: Path) -> None:
    pin = {"rules.csv": "dataset,region,rule\nclicks,west,pinned\nlogs,east,pinned\n"}
    path = write_tables(tmp_path / "pinned", PULLED | pin, settings="[limits]\ncopied_tb = 1\nmoves = 9\n")
    ended = call("solve", path, "--json")
    assert (ended.code, ended.record["status"]) == (3, "INFEASIBLE")
    asked = call("explain", path, "--json").record
    assert asked["status"] == "INFEASIBLE"
    assert any("the limit on copied_tb (1 TB)" in words for words in asked["conflict"])
    assert ["raise the limit on copied_tb to 5 TB"] in [repair["changes"] for repair in asked["repairs"]]
    repaired = tmp_path / "repaired"
    prices = ("--price", "pin=inf", "--price", "limit_moves=inf")
    call("explain", path, *prices, "--out", repaired)
    assert mast_opt.read(repaired).limits["copied_tb"] == 5
    assert call("solve", repaired).code == 0
    assert call("explain", path, "--limit", "copied_tb=5", "--json").record["status"] == "FEASIBLE"


@dataclass(frozen=True)
class _OutOfTime:
    """HiGHS, with no more than half of the optimum proven, and without a plan if asked."""

    planless: bool
    name: str = "highs"

    def solve(self, mip: Mip, params: SolveParams) -> SolveResult:
        found = backends.get("highs").solve(mip, params)
        assert found.objective is not None
        if self.planless:
            return SolveResult(Status.NO_SOLUTION, None, None, found.objective / 2, Limit.TIME, "")
        return SolveResult(Status.FEASIBLE, found.x, found.objective, found.objective / 2, Limit.TIME, "")


@pytest.mark.parametrize("planless", [False, True])
def test_a_least_value_that_is_not_found_in_time_has_a_bound(tmp_path: Path, planless: bool) -> None:
    pin = {"rules.csv": "dataset,region,rule\nclicks,west,pinned\nlogs,east,pinned\n"}
    problem: Any = mast_opt.read(write_tables(tmp_path / "pinned", PULLED | pin, settings="[limits]\ncopied_tb = 1\n"))
    elastic = Elastic(relief(problem))
    (g,) = (n for n, sort in enumerate(elastic.sort) if elastic.relief.limits[sort].name == "limit_copied_tb")
    backend: Any = _OutOfTime(planless)
    search = RepairSearch(problem, elastic, backend, SolveParams(), Clock(None))
    repair, words = search.alone(g, price_list(elastic.relief, {}), 1.0)
    assert words == "raise the limit on copied_tb to 3 TB at least (proven)"
    assert (repair is None) is planless
    assert planless or (some(repair).changes, some(repair).cheapest) == (
        ("raise the limit on copied_tb to 5 TB",),
        False,
    )
    console = Console(file=io.StringIO(), width=200)
    found = mast_opt.Explanation("data-placement", Status.INFEASIBLE, at_least=(words,))
    show_explanation(console, "pinned", found)
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert words in said
    assert "were not found in time" in said


def test_explain_of_a_plan_says_that_a_limit_forbids_the_rest(call: Call, pulled: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    call("solve", pulled, "--limit", "moves=0", "--out", plan)
    asked = call("explain", pulled, "--plan", plan, "--workload", "rank", "--json").record
    forbidden = {words for option in asked["reasons"][0]["alternatives"] for words in option["forbidden"]}
    assert "the limit on moves (0 moves) would be exceeded by 1 move" in forbidden


def test_whatif_keeps_and_changes_limits(call: Call, pulled: Path, tmp_path: Path) -> None:
    plan, scenarios = tmp_path / "plan", tmp_path / "scenarios.toml"
    scenarios.write_text(
        '[[scenario]]\nname = "as before"\ngrow_demand = { all = 1.1 }\n'
        '[[scenario]]\nname = "more"\nlimits = { copied_tb = 9 }\n'
        '[[scenario]]\nname = "none"\nlimits = { copied_tb = "none" }\n'
    )
    call("solve", pulled, "--limit", "copied_tb=0", "--out", plan)
    asked = call("whatif", pulled, "--scenarios", scenarios, "--plan", plan, "--json").record
    assert [one["metrics"]["copied_tb"] for one in asked["scenarios"]] == [0, 3, 3]
    scenarios.write_text('[[scenario]]\nname = "wrong"\nlimits = { copied = 9 }\n')
    ended = call("whatif", pulled, "--scenarios", scenarios)
    assert ended.code == 2
    assert "no limit called 'copied'" in ended.err


def test_pareto_keeps_limits(call: Call, pulled: Path) -> None:
    asked = call("pareto", pulled, "--terms", "copy,overload", "--points", "3", "--limit", "copied_tb=0", "--json")
    assert asked.code == 0
    assert {point["metrics"]["copied_tb"] for point in asked.record["points"]} == {0}


def test_a_heuristic_refuses_limits_that_it_does_not_keep() -> None:
    problem = mast_opt.generate("data-placement", seed=1, datasets=4, workloads=5, regions=2)
    with pytest.raises(mast_opt.UnsupportedOption, match="tetris does not keep a limit on egress; it keeps limits on"):
        mast_opt.solve(problem, "tetris", limits={"egress": 0})
