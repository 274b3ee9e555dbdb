"""``verify`` and ``report`` say whether anything proves the stated bound, and never call an unproven one right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import mast_opt
from mast_opt.problems.task_reassignment.verification.aggregate_bound import aggregate_bound
from tests.cli.conftest import Call, write_tables
from tests.cli.test_certificate import claim, plan, solved  # noqa: F401  (fixtures)


def test_a_bound_raised_to_the_objective_without_its_certificate(call: Call, solved: Path, plan: Path) -> None:  # noqa: F811
    (plan / "certificate.npz").unlink()
    objective = call("verify", solved / "instance", plan, "--json").record["objective"]
    claim(plan, objective)
    ended = call("verify", solved / "instance", plan, "--json")
    assert ended.code == 0
    assert ended.record["bound_checked"] is False
    assert ended.record["gap"] == 0
    assert any("and so the gap, is not checked" in note for note in ended.record["notes"])
    shown = call("verify", solved / "instance", plan).out
    assert "not checked" in shown
    assert "every stated figure is right" not in shown


def test_a_certificate_checks_the_bound(call: Call, solved: Path) -> None:  # noqa: F811
    assert call("verify", solved / "instance", solved / "plan", "--json").record["bound_checked"] is True
    shown = call("verify", solved / "instance", solved / "plan").out
    assert "every stated figure is right" in " ".join(shown.split())
    assert "not checked" not in shown


def test_no_bound_is_stated(call: Call, instance: Path, plan: Path, tmp_path: Path) -> None:  # noqa: F811
    tables = write_tables(tmp_path / "unclaimed")
    solved_plan = tmp_path / "own"
    assert call("solve", tables, "--out", solved_plan).code == 0
    text = (solved_plan / "plan.toml").read_text(encoding="utf-8")
    (solved_plan / "plan.toml").write_text(re.sub(r"(?m)^bound = .*\n", "", text), encoding="utf-8")
    record = call("verify", tables, solved_plan, "--json").record
    assert record["bound_checked"] is None
    (solved_plan / "plan.toml").unlink()
    assert call("verify", tables, solved_plan, "--json").record["bound_checked"] is None
    assert "stated" not in call("verify", tables, solved_plan).out


SMALL = {
    "data-placement": {"datasets": 4, "workloads": 5, "regions": 2},
    "job-placement": {},
    "server-assignment": {},
    "task-reassignment": {},
}


@pytest.mark.parametrize("kind", SMALL)
def test_the_bound_of_an_exact_solver_is_not_checked(call: Call, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "example.xlsx"
    mast_opt.write_template(kind, path)
    assert call("solve", path, "--time-limit", "20", "--out", tmp_path / "plan").code == 0
    record = call("verify", path, tmp_path / "plan", "--json").record
    assert record["error"] is None
    assert record["bound_checked"] is (record["bound"] <= (record["certified_bound"] or 0.0) + 1e-9)


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An instance of task reassignment whose aggregate bound is above 0, and a plan by twine."""
    folder = tmp_path_factory.mktemp("tasks")
    problem = mast_opt.generate("task-reassignment", seed=3, processes=30, machines=5)
    assert aggregate_bound(problem) > 0
    mast_opt.write(problem, folder / "instance")
    solution = mast_opt.solve(problem, "twine", iterations=3, threads=1)
    mast_opt.write_plan(problem, solution, folder / "plan")
    return folder


def test_the_bound_of_twine_is_computed_from_the_instance(call: Call, tasks: Path) -> None:
    record = call("verify", tasks / "instance", tasks / "plan", "--json").record
    assert record["bound_checked"] is True
    assert record["certified_bound"] == aggregate_bound(mast_opt.read(tasks / "instance"))


def test_twine_cannot_state_more_than_the_instance_proves(call: Call, tasks: Path, tmp_path: Path) -> None:
    problem = mast_opt.read(tasks / "instance")
    fields = {"solver": "twine", "bound": aggregate_bound(problem) + 1.0}
    from mast_opt.planner.io import write_plan

    write_plan(problem, mast_opt.read_plan(problem, tasks / "plan"), fields, tmp_path / "plan")
    ended = call("verify", tasks / "instance", tmp_path / "plan", "--json")
    assert ended.code == 5
    assert [violation["constraint"] for violation in ended.record["violations"]] == ["bound"]
    write_plan(problem, mast_opt.read_plan(problem, tasks / "plan"), {**fields, "solver": "highs"}, tmp_path / "exact")
    ended = call("verify", tasks / "instance", tmp_path / "exact", "--json")
    assert (ended.code, ended.record["bound_checked"]) == (0, False)


def test_stages_of_an_order_are_checked_too(call: Call, tmp_path: Path) -> None:
    order = '[objective]\nmode = "lexicographic"\norder = ["storage", "peak"]\n'
    instance = write_tables(tmp_path / "ordered", settings=order)
    assert call("solve", instance, "--out", tmp_path / "plan").code == 0
    assert call("verify", instance, tmp_path / "plan", "--json").record["bound_checked"] is False
    toml = tmp_path / "plan" / "plan.toml"
    text = toml.read_text(encoding="utf-8")
    start = text.index("stages")
    raised = re.sub(r'(term = "peak".*?bound = )[0-9.]+', r"\g<1>99.0", text[start:], flags=re.S)
    assert raised != text[start:]
    toml.write_text(text[:start] + raised, encoding="utf-8")
    ended = call("verify", instance, tmp_path / "plan", "--json")
    assert ended.code == 5
    assert [(one["constraint"], one["index"]) for one in ended.record["violations"]] == [("bound", ["peak"])]


def test_the_report_marks_a_bound_that_is_not_checked(call: Call, solved: Path, plan: Path, tmp_path: Path) -> None:  # noqa: F811
    (plan / "certificate.npz").unlink()
    ended = call("report", solved / "instance", plan, "--out", tmp_path / "page.html", "--json")
    assert ended.record["bound_checked"] is False
    assert "(not checked)" in (tmp_path / "page.html").read_text(encoding="utf-8")
    ended = call("report", solved / "instance", solved / "plan", "--out", tmp_path / "sound.html", "--json")
    assert ended.record["bound_checked"] is True
    assert "not checked" not in (tmp_path / "sound.html").read_text(encoding="utf-8")
