"""What each command does, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import mast_opt
from mast_opt.cli.app import COMMANDS
from tests.cli.conftest import OPTIMUM, Call, write_tables


@pytest.mark.parametrize("name", COMMANDS)
def test_help_teaches_by_example(call: Call, name: str) -> None:
    ended = call(name, "--help")
    assert ended.code == 0
    assert f"mast-opt {name} " in ended.out or name == "backends"
    assert "--json" in ended.out
    assert "Exit codes: 0 done" in ended.out


def test_help_fills_the_lines_of_a_narrow_terminal(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    lines = call("steps", "--help").out.splitlines()
    paragraph = lines[next(at for at, line in enumerate(lines) if line.startswith("For data placement:")) :]
    paragraph = paragraph[: next(at for at, line in enumerate(paragraph) if not line.strip())]
    assert len(paragraph) > 2
    assert all(len(line) > 45 for line in paragraph[:-1])


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_eighty_columns(call: Call, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, call(name, "--help").out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("generate", "  standard: many readers per dataset"),
        ("generate", "  (--clusters are those of each region, --servers those of each cluster on"),
        ("import", "      --regions 10: regions"),
    ],
)
def test_lists_in_help_have_a_line_an_entry(call: Call, name: str, line: str) -> None:
    assert any(shown.startswith(line) for shown in call(name, "--help").out.splitlines())


def test_help_lists_every_command(call: Call) -> None:
    out = call("--help").out
    assert all(name in out for name in COMMANDS)
    assert call().out == out


def test_version(call: Call) -> None:
    assert call("--version").out.startswith("mast-opt 0.")


def test_validate(call: Call, instance: Path) -> None:
    ended = call("validate", instance)
    assert ended.code == 0
    assert "VALID" in ended.out
    record = call("validate", instance, "--json").record
    assert record["rows"]["reads"] == 2
    assert "no table rules: reads as empty" in record["notes"]
    assert "no table links: any region reaches any other freely" in record["notes"]
    assert record["conflicts"] == []


def test_validate_notes_rounding(call: Call, tmp_path: Path) -> None:
    fine = "dataset,size_tb\nclicks,3.00000001\nlogs,2\n"
    folder = write_tables(tmp_path / "fine", {"datasets.csv": fine})
    assert any("size_tb" in note for note in call("validate", folder, "--json").record["notes"])


def test_validate_sees_a_contradiction(call: Call, contradiction: Path) -> None:
    ended = call("validate", contradiction)
    assert ended.code == 3
    assert "east" in ended.out
    record = call("validate", contradiction, "--json").record
    assert record["status"] == "INFEASIBLE"
    assert "east" in record["conflicts"][0]["message"]


def test_solve_says_what_contradicts(call: Call, contradiction: Path) -> None:
    ended = call("solve", contradiction)
    assert ended.code == 3
    assert "INFEASIBLE" in ended.out
    assert "east" in ended.out


def test_solve_proves_infeasibility(call: Call, packing: Path, tmp_path: Path) -> None:
    ended = call("solve", packing, "--json", "--out", tmp_path / "plan")
    assert ended.code == 3
    assert ended.record["status"] == "INFEASIBLE"
    assert not (tmp_path / "plan").exists()


def test_solve_out_of_time_while_reading(call: Call, instance: Path) -> None:
    ended = call("solve", instance, "--time-limit", "1e-6", "--json")
    assert ended.code == 4
    assert ended.record["status"] == "NO_SOLUTION"
    assert "--time-limit" in ended.record["error"]


def test_solve_shows_what_a_planner_defends(call: Call, instance: Path) -> None:
    out = call("solve", instance).out
    for words in ("OPTIMAL", "objective 2.1", "peak", "GPU demand against supply", "A100", "Storage and CPU", "--out"):
        assert words in out
    assert all(len(line) <= 80 for line in out.splitlines())
    assert "\x1b" not in out


def test_solve_writes_a_plan_that_verifies(call: Call, instance: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    ended = call("solve", instance, "--out", plan)
    assert ended.code == 0
    assert str(plan) in ended.out.replace("\n", "")
    verified = call("verify", instance, plan)
    assert verified.code == 0
    assert "VERIFIED" in verified.out
    record = call("verify", instance, "--plan", plan, "--json").record
    assert record["objective"] == pytest.approx(OPTIMUM)
    assert record["solver"] == "auto"
    assert record["status"] == "FEASIBLE"
    assert record["same_instance"] is True


def test_a_plan_starts_the_next_solve(call: Call, instance: Path, tmp_path: Path) -> None:
    plan, events = tmp_path / "plan", tmp_path / "events"
    assert call("solve", instance, "--out", plan).code == 0
    assert call("solve", instance, "--start", plan, "--events", events).code == 0
    first = json.loads(events.read_text().splitlines()[0])
    assert first["incumbent"] == pytest.approx(OPTIMUM)


def test_events(call: Call, instance: Path, tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    assert call("solve", instance, "--events", events).code == 0
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    assert lines
    assert all(set(line) == {"elapsed_s", "incumbent", "bound", "gap", "stage", "compiling"} for line in lines)
    assert lines[-1]["incumbent"] == pytest.approx(OPTIMUM)
    assert [line["elapsed_s"] for line in lines] == sorted(line["elapsed_s"] for line in lines)


@pytest.mark.parametrize("there", ["name,units\nfleet,3\n", "[1]\n", '{"elapsed_s": null}\n', "\n", "ä" * 2000])
def test_events_replace_only_events(call: Call, instance: Path, tmp_path: Path, there: str) -> None:
    file = tmp_path / "file"
    file.write_text(there, encoding="utf-8")
    ended = call("solve", instance, "--events", file)
    assert ended.code == 2
    assert "no log of events" in ended.err
    assert file.read_text(encoding="utf-8") == there


def test_events_are_no_part_of_the_folder_that_the_plan_replaces(call: Call, instance: Path, tmp_path: Path) -> None:
    ended = call("solve", instance, "--out", tmp_path / "plan", "--events", tmp_path / "plan" / "events.jsonl")
    assert ended.code == 2
    assert "is inside --out" in ended.err
    assert not (tmp_path / "plan").exists()


def test_events_replace_an_earlier_log(call: Call, instance: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text('{"elapsed_s": 7.0, "incumbent": null, "bound": 1.0, "stage": null}\n')
    assert call("solve", instance, "--events", file).code == 0
    assert json.loads(file.read_text().splitlines()[0])["elapsed_s"] != 7.0


def test_solver_options_reach_the_solver(call: Call, instance: Path) -> None:
    assert (
        call(
            "solve", instance, "--solver", "highs", "--option", "mip_heuristic_effort=0.2", "--option", "presolve=off"
        ).code
        == 0
    )
    ended = call("solve", instance, "--solver", "highs", "--option", "mip_heuristic_effrt=0.2")
    assert ended.code == 2
    assert "mip_heuristic_effrt" in ended.err
    assert call("solve", instance, "--solver", "highs", "--option", "presolve").code == 2
    twice = call("solve", instance, "--solver", "highs", "--option", "presolve=off", "--option", "presolve=on")
    assert twice.code == 2
    assert "presolve is given twice" in twice.err


def test_verify_names_what_is_broken(call: Call, instance: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    call("solve", instance, "--out", plan)
    runs = (plan / "runs.csv").read_text().splitlines()
    (plan / "runs.csv").write_text("\n".join(line for line in runs if not line.startswith("spam")) + "\n")
    ended = call("verify", instance, plan)
    assert ended.code == 5
    assert "served[spam]" in ended.out
    record = call("verify", instance, plan, "--json").record
    served = next(violation for violation in record["violations"] if violation["constraint"] == "served")
    assert served["index"] == ["spam"]
    assert record["error"]


@pytest.mark.parametrize(("name", "stated"), [("objective", "1.5"), ("bound", "2.2")])
def test_verify_checks_what_the_plan_says_of_itself(
    call: Call, instance: Path, tmp_path: Path, name: str, stated: str
) -> None:
    plan = tmp_path / "plan"
    call("solve", instance, "--out", plan)
    toml = (plan / "plan.toml").read_text().splitlines()
    (plan / "plan.toml").write_text(
        "\n".join(f"{name} = {stated}" if line.startswith(f"{name} =") else line for line in toml)
    )
    ended = call("verify", instance, plan, "--json")
    assert ended.code == 5
    assert [violation["constraint"] for violation in ended.record["violations"]] == [name]


def test_verify_knows_a_plan_for_another_instance(call: Call, instance: Path, tmp_path: Path) -> None:
    call("solve", instance, "--out", tmp_path / "plan")
    larger = "region,storage_tb,cpu_cores\neast,10,10\nwest,12,10\n"
    other = write_tables(tmp_path / "other", {"regions.csv": larger})
    record = call("verify", other, tmp_path / "plan", "--json").record
    assert record["same_instance"] is False
    assert "another instance" in record["notes"][0]
    smaller = "region,storage_tb,cpu_cores\neast,1,10\nwest,1,10\n"
    broken = write_tables(tmp_path / "broken", {"regions.csv": smaller})
    ended = call("verify", broken, tmp_path / "plan")
    assert ended.code == 5
    assert "another instance called two-regions" in ended.out.partition("VIOLATIONS")[0]
    error = call("verify", broken, tmp_path / "plan", "--json").record["error"]
    assert error.startswith("this plan was made for another instance")


def test_a_wrong_figure_is_no_broken_limit(call: Call, instance: Path, tmp_path: Path) -> None:
    call("solve", instance, "--out", tmp_path / "plan")
    toml = tmp_path / "plan" / "plan.toml"
    toml.write_text(toml.read_text().replace("objective = ", "objective = 7.5 # ", 1))
    ended = call("verify", instance, tmp_path / "plan")
    assert ended.code == 5
    assert "WRONG FIGURES  1 figure of plan.toml is not the verifier's" in ended.out
    assert "VIOLATIONS" not in ended.out


def test_verify_refuses_figures_that_are_none(call: Call, instance: Path, tmp_path: Path) -> None:
    call("solve", instance, "--out", tmp_path / "plan")
    toml = tmp_path / "plan" / "plan.toml"
    toml.write_text(toml.read_text().replace("objective = ", 'objective = "two"\nwas = '))
    ended = call("verify", instance, tmp_path / "plan")
    assert ended.code == 2
    assert "objective" in ended.err


@pytest.mark.parametrize("name", ["i.lp", "i.mps", "i.dat", "i.xlsx", "i.json", "folder"])
def test_export_writes_every_format_once(call: Call, instance: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    assert call("export", instance, out).code == 0
    assert out.exists()
    assert call("export", instance, out).code == 2
    assert call("export", instance, out, "--force").code == 0


@pytest.mark.parametrize("name", ["i.lp", "i.mps"])
def test_an_exported_program_has_the_same_optimum(call: Call, instance: Path, tmp_path: Path, name: str) -> None:
    import highspy

    call("export", instance, tmp_path / name)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("mip_rel_gap", 0.0)
    assert solver.readModel(str(tmp_path / name)) == highspy.HighsStatus.kOk
    solver.run()
    assert solver.getInfo().objective_function_value == pytest.approx(OPTIMUM)
    assert "place" in (tmp_path / name).read_text()


def test_exported_tables_are_the_same_instance(call: Call, instance: Path, tmp_path: Path) -> None:
    call("export", instance, tmp_path / "i.xlsx")
    assert mast_opt.checksum(mast_opt.read(tmp_path / "i.xlsx")) == mast_opt.checksum(mast_opt.read(instance))


@pytest.mark.parametrize(
    "tokens", [["i.pdf"], ["i.dat", "--formulation", "base"], ["i.lp", "--formulation", "no-such"], ["no/", "--x"]]
)
def test_export_refuses_what_makes_no_sense(call: Call, instance: Path, tmp_path: Path, tokens: list[str]) -> None:
    ended = call("export", instance, tmp_path / tokens[0], *tokens[1:])
    assert ended.code == 2
    assert ended.err.startswith("error: ")


def test_generate(call: Call, tmp_path: Path) -> None:
    sizes = ["--datasets", 7, "--workloads", 9, "--regions", 3]
    assert call("generate", "data-placement", tmp_path / "one", *sizes, "--seed", 4).code == 0
    assert call("generate", "data-placement", tmp_path / "two.json", *sizes, "--seed", 4).code == 0
    assert call("generate", "data-placement", tmp_path / "three", *sizes, "--seed", 4, "--format", "parquet").code == 0
    assert call("generate", "data-placement", tmp_path / "four", *sizes, "--seed", 5).code == 0
    assert (
        call("generate", "job-placement", tmp_path / "five", "--servers", 2, "--jobs", 3, "--fill-percent", 50).code
        == 0
    )
    one, two, three, four = (mast_opt.read(tmp_path / name) for name in ("one", "two.json", "three", "four"))
    assert len(one.datasets) == 7
    assert mast_opt.checksum(one) == mast_opt.checksum(two) == mast_opt.checksum(three)
    assert mast_opt.checksum(one) != mast_opt.checksum(four)


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (["no-such-kind", "x"], "data-placement"),
        (["data-placement", "x", "--family", "no-such"], "standard"),
        (["data-placement", "x", "--dataset", "3"], "datasets"),
        (["data-placement", "x", "--datasets", "0"], "at least 1"),
        (["data-placement", "x", "--datasets", "many"], "--datasets many: expected a whole number"),
        (["data-placement", "x", "--famly", "links"], "did you mean 'family'?"),
        (["job-placement", "x", "--fill-percnt", "50"], "did you mean 'fill-percent'?"),
        (["data-placement", "x", "--seed", "-1"], "seed"),
    ],
)
def test_generate_says_what_there_is(call: Call, tokens: list[str], words: str) -> None:
    ended = call("generate", *tokens)
    assert ended.code == 2
    assert words in ended.err


@pytest.mark.parametrize("name", ["fleet.xlsx", "fleet.json"])
def test_tables_make_a_folder(call: Call, tmp_path: Path, name: str) -> None:
    ended = call("generate", "data-placement", tmp_path / name, "--datasets", 3, "--workloads", 3, "--format", "csv")
    assert ended.code == 2
    assert "make a folder" in ended.err
    assert not (tmp_path / name).exists()


def test_generate_keeps_what_is_there(call: Call, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    assert call("generate", "data-placement", tmp_path / "mine", "--force").code == 2
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "years of work"


def test_import_says_what_it_needs(call: Call, tmp_path: Path) -> None:
    ended = call("import", "cloud-regions")
    assert ended.code == 2
    assert "OUT" in ended.err
    assert call("import", "cloud-regions", tmp_path, tmp_path, tmp_path, tmp_path / "out").code == 2


@pytest.mark.second_tier
def test_backends(call: Call) -> None:
    ended = call("backends")
    assert ended.code == 0
    assert "highs" in ended.out
    record = call("backends", "--json").record
    highs = next(solver for solver in record["solvers"] if solver["name"] == "highs")
    assert highs["version"]
    assert all(solver["version"] or "pip install" in solver["reason"] for solver in record["solvers"])
    assert "tetris" in record["heuristics"]["data-placement"]
    assert record["parameters"]["ras"]["sub_mip.gap"]["default"] == 1e-3


def test_backends_lists_the_parameters_of_a_solver(call: Call) -> None:
    ended = call("backends", "ras")
    assert ended.code == 0
    assert "price_steps = 40  a whole number of at least 1" in ended.out
    record = call("backends", "ras", "--json").record
    assert set(record["parameters"]["ras"]["price_steps"]) == {"default", "expected", "effect", "reason"}
    assert call("backends", "ras", "--json").record["parameters"].keys() == {"ras"}
    assert "highs has no parameters; these solvers have some: " in call("backends", "highs").err
    assert "there is no solver called 'rass'; did you mean 'ras'" in call("backends", "rass").err
