"""Plans: every table written, read back onto the problem's axes, tied to the instance by its checksum."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mast_opt.core.errors import InputError, InstanceError, PlanError, UsageError
from mast_opt.planner.io import check_plan_target, checksum, read, read_plan, read_plan_of, write_plan
from mast_opt.problems.kind.schema import Tables
from tests.io.conftest import Folder
from tests.io.toy import GOOD, HEADER, Toy

FIELDS = {"status": "OPTIMAL", "objective": 0.1, "bound": None, "seed": 7, "versions": {"mast-opt": "0.1.0"}}


@pytest.fixture
def toy(folder: Folder) -> Toy:
    problem: Toy = read(folder())
    return problem


@pytest.fixture
def plan(toy: Toy) -> Tables:
    pick = {"item": np.array([1, 0]), "site": np.array([0, 1]), "share": np.array([1000, 250])}
    paint = {"item": np.array([0]), "colour": np.array([0])}
    return Tables(toy.tables.axes, {"picks": pick, "paints": paint}, {"paints": {"colour": np.array([False])}})


def test_round_trip(toy: Toy, plan: Tables, tmp_path: Path) -> None:
    target = tmp_path / "plan"
    write_plan(toy, plan, FIELDS, target)
    assert (target / "picks.csv").read_text() == 'item,site,share\n"b, the second",eu,1\na,us,0.25\n'
    assert (target / "paints.csv").read_text() == "item\na\n"
    reading = read_plan_of(toy, target)
    for table in ("picks", "paints"):
        for column, values in plan.values[table].items():
            np.testing.assert_array_equal(reading.plan.get(table, column), values)
    assert reading.plan.has("paints", "colour").tolist() == [False]
    assert reading.same_instance is True
    fields = tomllib.loads((target / "plan.toml").read_text())
    assert fields["checksum"] == checksum(toy)
    assert fields["objective"] == 0.1
    assert fields["versions"] == {"mast-opt": "0.1.0"}
    assert "bound" not in fields


def test_an_empty_plan_is_header_only(toy: Toy, tmp_path: Path) -> None:
    none = np.zeros(0, np.int64)
    empty = {"picks": dict.fromkeys(("item", "site", "share"), none), "paints": dict.fromkeys(("item", "colour"), none)}
    write_plan(toy, Tables(toy.tables.axes, empty), {}, tmp_path / "plan")
    assert (tmp_path / "plan" / "picks.csv").read_text() == "item,site,share\n"
    assert (tmp_path / "plan" / "paints.csv").read_text() == "item,colour\n"
    assert read_plan(toy, tmp_path / "plan").rows("picks") == 0


def test_labels_that_the_problem_does_not_have(toy: Toy, tmp_path: Path) -> None:
    (tmp_path / "picks.csv").write_text("item,site,share\na,EU,1\nc,us,1.5\na,us,\n")
    (tmp_path / "paints.csv").write_text("item,colour\na,green\n")
    with pytest.raises(PlanError) as caught:
        read_plan(toy, tmp_path)
    assert [(fault.file, fault.row, fault.column, fault.value) for fault in caught.value.faults] == [
        ("picks.csv", 3, "share", ""),
        ("picks.csv", 2, "share", "1.5"),
        ("picks.csv", 2, "item", "c"),
        ("picks.csv", 1, "site", "EU"),
        ("paints.csv", 1, "colour", "green"),
    ]
    assert caught.value.faults[3].expected == "a label listed in the instance; did you mean 'eu'?"
    assert str(caught.value).startswith("5 faults in the plan:")


def test_a_folder_that_is_no_plan(toy: Toy, folder: Folder, tmp_path: Path) -> None:
    with pytest.raises(PlanError) as caught:
        read_plan(toy, folder(name="instance"))
    assert {fault.file for fault in caught.value.faults} >= {"picks.csv", "paints.csv", "sites.csv"}
    assert "instance holds an instance; give a plan" in str(caught.value).splitlines()[0]
    with pytest.raises(PlanError, match="there is nothing at this path"):
        read_plan(toy, tmp_path / "nowhere")


def test_a_plan_in_place_of_an_instance(toy: Toy, plan: Tables, tmp_path: Path) -> None:
    write_plan(toy, plan, FIELDS, tmp_path / "plan")
    with pytest.raises(InstanceError) as caught:
        read(tmp_path / "plan")
    assert "plan holds a plan; give an instance" in str(caught.value).splitlines()[0]


def test_a_plan_without_plan_toml_and_one_of_another_kind(toy: Toy, tmp_path: Path) -> None:
    (tmp_path / "picks.csv").write_text("item,site,share\na,eu,1\n")
    (tmp_path / "paints.csv").write_text("item\n")
    assert read_plan_of(toy, tmp_path).same_instance is None
    (tmp_path / "plan.toml").write_text('format = "mast-opt/1"\nkind = "data-placement"\n')
    with pytest.raises(PlanError, match="a plan for toy"):
        read_plan(toy, tmp_path)


def test_a_plan_of_a_changed_instance_is_read_and_marked(
    toy: Toy, plan: Tables, folder: Folder, tmp_path: Path
) -> None:
    write_plan(toy, plan, FIELDS, tmp_path / "plan")
    changed = read(folder(name="changed", sites="site,storage_tb\neu,11\nus,20.5\n"))
    reading = read_plan_of(changed, tmp_path / "plan")
    assert reading.same_instance is False
    then, now = (checksum(one)[:15] for one in (toy, changed))
    assert reading.foreign == (
        f"this plan was made for another instance called a toy (checksum {then}…), or this one has changed since "
        f"(checksum {now}…)"
    )


@pytest.mark.parametrize("with_checksum", [True, False])
def test_labels_of_another_instance_are_said_to_be_of_another_one(
    toy: Toy, plan: Tables, folder: Folder, tmp_path: Path, with_checksum: bool
) -> None:
    write_plan(toy, plan, FIELDS, tmp_path / "plan")
    tables = {name: text.replace("eu", "asia") for name, text in GOOD.items()}
    other = read(folder(name="other", header=HEADER.replace("a toy", "a game"), **tables))
    words = f"made for instance a toy (checksum {checksum(toy)[:15]}…), not for a game ({checksum(other)[:15]}…)"
    if not with_checksum:
        words = "made for instance a toy, not for a game"
        stated = (tmp_path / "plan" / "plan.toml").read_text().splitlines(keepends=True)
        (tmp_path / "plan" / "plan.toml").write_text("".join(line for line in stated if "checksum" not in line))
    with pytest.raises(PlanError) as caught:
        read_plan(other, tmp_path / "plan")
    first, second, *_ = str(caught.value).splitlines()
    assert first == f"this plan was {words}"
    assert second == "1 fault in the plan:"


def test_only_an_earlier_plan_is_replaced(toy: Toy, plan: Tables, folder: Folder, tmp_path: Path) -> None:
    target = tmp_path / "plan"
    check_plan_target(toy, target)
    write_plan(toy, plan, FIELDS, target)
    write_plan(toy, plan, {"seed": 8}, target)
    assert tomllib.loads((target / "plan.toml").read_text())["seed"] == 8
    assert not [entry for entry in tmp_path.iterdir() if "partial" in entry.name]
    instance = folder(name="instance")
    refusals: tuple[Callable[[], None], ...] = (
        lambda: write_plan(toy, plan, FIELDS, instance),
        lambda: check_plan_target(toy, instance),
    )
    for refuse in refusals:
        with pytest.raises(InputError, match=r"holds.csv.* which is no part of an earlier plan"):
            refuse()
    read(instance)


def test_what_plan_toml_says_by_itself(toy: Toy, plan: Tables, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="leave out checksum"):
        write_plan(toy, plan, {"checksum": "x"}, tmp_path / "plan")
