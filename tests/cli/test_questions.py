"""``explain``, ``marginal``, ``whatif`` and ``pareto`` at the command line."""

from __future__ import annotations

import csv
import shlex
from pathlib import Path

import pytest

import mast_opt
from tests.cli.conftest import OPTIMUM, Call
from tests.cli.test_record import KEYS


def test_explain_a_contradiction(call: Call, contradiction: Path) -> None:
    ended = call("explain", contradiction)
    assert ended.code == 3
    assert "- storage of east (4 TB) with datasets clicks and logs pinned there (5 TB)" in ended.out
    assert "raise storage of east by 1 TB" in ended.out
    assert "drop the pin of clicks to east" in ended.out
    record = call("explain", contradiction, "--json", "--alternatives", "1").record
    assert set(record) >= KEYS
    assert record["status"] == "INFEASIBLE"
    assert record["minimal"] is True
    assert [repair["changes"] for repair in record["repairs"]] == [["raise storage of east by 1 TB"]]
    assert record["limits"] == {"storage": [0], "pin": [0, 1]}
    assert "storage of east" in record["error"]


def test_explain_what_only_a_solver_sees(call: Call, packing: Path) -> None:
    ended = call("explain", packing)
    assert ended.code == 3
    assert "CPU of east (10 cores) and CPU of west (10 cores)" in ended.out
    assert "workloads rank, spam and feed must run (18 cores)" in ended.out


def test_prices_of_repairs(call: Call, contradiction: Path) -> None:
    record = call("explain", contradiction, "--price", "storage=inf", "--alternatives", "1", "--json").record
    assert record["repairs"][0]["changes"][0].startswith("drop the pin")


@pytest.mark.parametrize("name", ["repaired", "repaired at last.xlsx"])
def test_the_repaired_instance_is_written(call: Call, contradiction: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    ended = call("explain", contradiction, "--out", out)
    assert ended.code == 3
    assert shlex.join(["mast-opt", "solve", str(out)]) in ended.out
    assert call("solve", out).code == 0
    before = call("explain", contradiction, "--out", out, "--json")
    assert before.code == 2
    assert "exists already" in before.record["error"]
    assert before.record["runtime_s"]["solve"] == 0  # refused before the time is spent
    assert call("explain", contradiction, "--out", out, "--force", "--json").record["out"] == str(out)


def test_nothing_to_explain(call: Call, instance: Path) -> None:
    ended = call("explain", instance)
    assert ended.code == 0
    assert "FEASIBLE" in ended.out
    assert "--plan" in ended.out


def test_explain_a_plan(call: Call, instance: Path, plan: Path) -> None:
    ended = call("explain", instance, "--plan", plan, "--workload", "rank")
    assert ended.code == 0
    assert "rank runs in east on A100" in ended.out
    listed = call("explain", instance, "--plan", plan, "--workload", "rank,spam", "--json").record["reasons"]
    repeated = call("explain", instance, "--plan", plan, "--workload", "rank", "--workload", "spam", "--json").record
    assert listed == repeated["reasons"]
    assert [row["name"] for row in listed] == ["rank", "spam"]
    record = call("explain", instance, "--plan", plan, "--workload", "rank", "--json").record
    (reasons,) = record["reasons"]
    assert reasons["name"] == "rank"
    best = reasons["alternatives"][0]
    assert best["change"] > 0
    assert best["terms"]
    assert best["forbidden"] == []
    everyone = call("explain", instance, "--plan", plan, "--json").record["reasons"]
    assert [one["name"] for one in everyone] == ["rank", "spam"]


def test_marginal(call: Call, instance: Path, plan: Path) -> None:
    ended = call("marginal", instance, "--plan", plan, "--full")
    assert ended.code == 0
    assert "east A100" in ended.out
    record = call("marginal", instance, "--plan", plan, "--resource", "gpus", "--json").record
    assert record["objective"] == pytest.approx(OPTIMUM)
    assert {one["place"] for one in record["values"]} == {"east A100", "west A100"}
    problem = mast_opt.read(instance)
    by_hand = mast_opt.marginal_values(problem, mast_opt.read_plan(problem, plan), resources=["gpus"])
    assert [one["value"] for one in record["values"]] == [one.value for one in by_hand.values]


def test_marginal_with_everything_anew(call: Call, instance: Path) -> None:
    ended = call("marginal", instance, "--free", "--resource", "storage", "--units", "5", "--jobs", "2", "--full")
    assert ended.code == 0
    assert "proven range" in " ".join(ended.out.split())


def test_whatif(call: Call, instance: Path, plan: Path, scenarios: Path) -> None:
    ended = call("whatif", instance, "--scenarios", scenarios, "--plan", plan)
    assert ended.code == 0
    assert "base: the plan that was given, not planned again" in ended.err
    assert "base is the plan that was given, not planned again." in ended.out
    assert "east is lost" in ended.out
    record = call("whatif", instance, "--scenarios", scenarios, "--plan", plan, "--jobs", "2", "--json").record
    assert set(record) >= KEYS
    assert record["objective"] == pytest.approx(OPTIMUM)
    assert [one["name"] for one in record["scenarios"]] == ["east is lost", "growth"]
    lost = record["scenarios"][0]
    assert lost["base_plan"]["violations"] == []
    assert lost["base_plan"]["terms"]["unserved"] > 0
    problem = mast_opt.read(instance)
    place = mast_opt.read_plan(problem, plan).place
    only_east = [
        name for name, held in zip(problem.datasets.labels, place.tolist(), strict=True) if held == [True, False]
    ]
    assert only_east
    assert lost["lost_datasets"] == only_east
    assert lost["lost_tb"] == pytest.approx(
        sum(problem.datasets.size_mb[problem.datasets.labels.index(i)] for i in only_east) / 1e6
    )
    assert lost["lost_workloads"]
    assert lost["terms"]["unserved"] > 0
    assert record["base"]["lost_datasets"] == record["scenarios"][1]["lost_datasets"] == []
    assert f"east is lost: {only_east[0]} is lost (" in " ".join(ended.out.split())
    assert record["robust"] is None


@pytest.mark.parametrize("order", [("peak", "remote"), ("unserved", "storage")])
def test_whatif_compares_the_same_term(call: Call, instance: Path, scenarios: Path, order: tuple[str, str]) -> None:
    """With a lexicographic objective, the base plan is stated by the term that the new plan's objective is of."""
    head = instance / "instance.toml"
    head.write_text(f"{head.read_text()}[objective]\nmode = 'lexicographic'\norder = {list(order)}\n")
    ended = call("whatif", instance, "--scenarios", scenarios, "--json")
    for one in (ended.record["base"], *ended.record["scenarios"]):
        assert one["objective"] == pytest.approx(one["terms"][order[1]])
        assert one["base_plan"]["objective"] == pytest.approx(one["base_plan"]["terms"][order[1]])
    assert f"({order[1]})" in call("whatif", instance, "--scenarios", scenarios).out


def test_the_plans_of_scenarios_are_written_and_verify(
    call: Call, instance: Path, plan: Path, scenarios: Path, tmp_path: Path
) -> None:
    """East takes its only copy of clicks with it, and a pin of the work that reads it."""
    (instance / "workload_rules.csv").write_text("workload,region,rule\nrank,east,pinned\n")
    tokens = ("whatif", instance, "--scenarios", scenarios, "--plan", plan, "--plan-out", tmp_path / "after", "--json")
    ended = call(*tokens)
    assert ended.record["plan_out"] == str(tmp_path / "after")
    for number, scenario in (("1", "east is lost"), ("2", "growth")):
        folder = tmp_path / "after" / number
        assert f', {scenario}"' in (folder / "instance" / "instance.toml").read_text()
        assert call("verify", folder / "instance", folder / "plan").code == 0
        assert call("steps", folder / "instance", folder / "plan").code == 0
    again = call(*tokens)
    assert again.code == 2
    assert "it is there already" in again.record["error"]


def test_a_robust_plan_is_written_and_verifies(call: Call, instance: Path, scenarios: Path, tmp_path: Path) -> None:
    out = tmp_path / "robust"
    ended = call("whatif", instance, "--scenarios", scenarios, "--robust", "worst", "--out", out, "--json")
    assert ended.code == 0
    robust = ended.record["robust"]
    assert robust["objective"] == pytest.approx(robust["bound"], rel=1e-3)
    assert robust["objective"] <= robust["base_objective"] + 1e-9
    assert set(robust["scenarios"]) == {"base", "east is lost", "growth"}
    assert call("verify", instance, out).code == 0
    assert (ended.record["out"], robust["violations"]) == (str(out), [])


def test_pareto(call: Call, instance: Path, tmp_path: Path) -> None:
    out = tmp_path / "frontier.csv"
    ended = call("pareto", instance, "--terms", "storage,peak", "--keep", "remote=0", "--points", "3", "--out", out)
    assert ended.code == 0
    assert "storage against peak" in ended.out
    with out.open() as file:
        rows = list(csv.DictReader(file))
    record = call("pareto", instance, "--terms", "storage,peak", "--keep", "remote=0", "--points", "3", "--json").record
    assert len(rows) == len(record["points"])
    assert [float(row["peak"]) for row in rows] == [point["terms"]["peak"] for point in record["points"]]
    assert all(point["proven"] for point in record["points"])
    assert record["between"] == ["storage", "peak"]


def test_pareto_overwrites_only_when_told(call: Call, instance: Path, tmp_path: Path) -> None:
    out = tmp_path / "frontier.csv"
    out.write_text("mine\n")
    tokens = ("pareto", instance, "--terms", "storage,peak", "--keep", "remote=0", "--points", "2", "--out", out)
    ended = call(*tokens)
    assert ended.code == 2
    assert "--force" in ended.err
    assert out.read_text() == "mine\n"
    assert call(*tokens, "--force").code == 0
    assert out.read_text().startswith("storage,peak,")


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (["explain", "{instance}", "--price", "storage"], "NAME=NUMBER"),
        (["explain", "{instance}", "--price", "storage=x"], "NAME=NUMBER"),
        (["explain", "{instance}", "--workload", "rank"], "give the plan"),
        (["explain", "{instance}", "--plan", "nowhere"], "nowhere"),
        (
            ["explain", "{instance}", "--plan", "{plan}", "--workload", "nobody"],
            "no workload or dataset called 'nobody'",
        ),
        (["explain", "{instance}", "--plan", "{plan}", "--workload", "rnak"], "did you mean 'rank'?"),
        (["explain", "{instance}", "--plan", "{plan}", "--job", "rank"], "use --workload or --dataset"),
        (["explain", "{instance}", "--process", "p"], "--process makes no sense here"),
        (["explain", "{instance}", "--solver", "tetris"], "cannot prove"),
        (["explain", "{instance}", "--plan", "{plan}", "--out", "x"], "--out"),
        (["marginal", "{instance}", "--resource", "sun"], "storage, cpu, gpus"),
        (["marginal", "{instance}", "--units", "0"], "units"),
        (["marginal", "{instance}", "--plan", "{plan}", "--gap", "0.1"], "leave out gap"),
        (["explain", "{instance}", "--force"], "--out"),
        (["pareto", "{instance}", "--terms", "storage,peak", "--force"], "--out"),
        (["whatif", "{instance}"], "scenarios"),
        (["whatif", "{instance}", "--scenarios", "nothing.toml"], "nothing.toml"),
        (["whatif", "{instance}", "--scenarios", "{scenarios}", "--out", "x"], "--robust"),
        (["whatif", "{instance}", "--scenarios", "{scenarios}", "--robust", "best"], "worst, weighted"),
        (["pareto", "{instance}"], "terms"),
        (["pareto", "{instance}", "--terms", "storage"], "two different ones"),
        (["pareto", "{instance}", "--terms", "storage,joy"], "no term called 'joy'"),
        (["pareto", "{instance}", "--terms", "storage,peak", "--keep", "copy=-1"], "no plan has"),
        (["pareto", "{instance}", "--terms", "storage,peak", "--out", "x.png"], ".csv"),
    ],
)
def test_bad_usage(call: Call, instance: Path, plan: Path, scenarios: Path, tokens: list[str], words: str) -> None:
    known = {"instance": instance, "plan": plan, "scenarios": scenarios}
    ended = call(*(token.format(**known) for token in tokens), "--json")
    assert ended.code == 2
    assert words in ended.record["error"]
    assert set(ended.record) >= KEYS
    assert "Traceback" not in ended.err


def test_a_misspelt_key_lists_what_there_is(call: Call, instance: Path, tmp_path: Path) -> None:
    path = tmp_path / "odd.toml"
    path.write_text('[[scenario]]\nname = "odd"\nlose_region = ["east"]\n')
    ended = call("whatif", instance, "--scenarios", path)
    assert ended.code == 2
    assert "lose_regions" in ended.err
    assert "scenario odd" in ended.err


def test_a_scenario_without_room_is_told(call: Call, instance: Path, plan: Path, tmp_path: Path) -> None:
    path = tmp_path / "full.toml"
    path.write_text('[[scenario]]\nname = "full"\nadd_storage_tb = { east = -9, west = -9 }\n')
    ended = call("whatif", instance, "--scenarios", path, "--plan", plan)
    assert ended.code == 0
    assert "INFEASIBLE" in ended.out
    assert "full:" in ended.out


def test_pareto_asks_whether_it_may_write_before_it_solves(call: Call, instance: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = call("pareto", instance, "--terms", "storage,peak", "--out", tmp_path / "file" / "frontier.csv")
    assert ended.code == 2
    assert "could not be written" in ended.err
    assert "storage against peak" not in ended.out
    (tmp_path / "folder.csv").mkdir()
    ended = call("pareto", instance, "--terms", "storage,peak", "--out", tmp_path / "folder.csv", "--json")
    assert ended.code == 2
    assert "as a folder; choose the name of a file" in ended.record["error"]
    assert ended.record["runtime_s"]["solve"] == 0
    assert (
        call("pareto", instance, "--terms", "storage,peak", "--points", "2", "--out", tmp_path / "new/f.csv").code == 0
    )
    assert len((tmp_path / "new/f.csv").read_text().splitlines()) > 1
