"""``--param`` and ``--params``: what they set, what they refuse, and where it is recorded."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import mast_opt
from tests.cli.conftest import Call


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """A small fleet."""
    mast_opt.write(mast_opt.generate("server-assignment", seed=1, servers=20, reservations=2), tmp_path / "fleet")
    return tmp_path / "fleet"


@pytest.mark.parametrize("command", ["solve", "pareto", "whatif"])
@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--solver", "ras", "--param", "price_stps=3"), "did you mean 'price_steps'?\n'mast-opt backends ras' lists"),
        (
            ("--solver", "ras", "--param", "price_steps=0"),
            "price_steps of RasParams is 0; expected a whole",
        ),
        (("--solver", "ras", "--param", "bound_interval=3"), "bound_interval of RasParams is fixed at 10; it is not"),
        (("--solver", "ras", "--param", "price_steps"), "parameter 'price_steps': expected NAME=VALUE"),
        (("--solver", "highs", "--param", "gap=0"), "highs is a MIP backend: it takes options by its own names"),
        (("--solver", "ras", "--params", "nowhere.toml"), "nowhere.toml: No such file or directory; expected a TOML"),
    ],
)
def test_what_does_not_fit_is_refused(
    call: Call, fleet: Path, scenarios: Path, command: str, given: tuple[str, ...], words: str
) -> None:
    needed = {"solve": (), "pareto": ("--terms", "use,buffer"), "whatif": ("--scenarios", scenarios)}[command]
    if command == "whatif":
        scenarios.write_text('[[scenario]]\nname = "more"\ngrow_demand = { all = 1.1 }\n')
    ended = call(command, fleet, *needed, *given)
    assert ended.code == 2
    assert words in ended.err


def test_a_file_that_is_no_toml_is_refused(call: Call, fleet: Path, tmp_path: Path) -> None:
    (tmp_path / "ras.toml").write_text("price_steps =")
    ended = call("solve", fleet, "--solver", "ras", "--params", tmp_path / "ras.toml")
    assert ended.code == 2
    assert "ras.toml is not TOML" in ended.err


def test_file_and_option_reach_the_solver_and_are_recorded(call: Call, fleet: Path, tmp_path: Path) -> None:
    file, plan = tmp_path / "ras.toml", tmp_path / "plan"
    file.write_text("price_steps = 20\nlp_pairs = 20_000\n[sub_mip]\ngap = 0.01\n")
    set_here = ("--params", file, "--param", "price_steps=10")
    ended = call("solve", fleet, "--solver", "ras", "--iterations", 1, *set_here, "--out", plan, "--json", "--log")
    assert ended.code == 0
    assert "\nparameters: price_steps = 10, sub_mip.gap = 0.01\n" in ended.err
    assert "\nstrategy: stages = none, linear_relaxation = true, sub_mips = true, " in ended.err
    assert " s  objective " in ended.err
    assert ended.record["strategy"]["integer_bound"] == "every round"
    assert ended.record["params"] == {"price_steps": 10, "sub_mip.gap": 0.01}
    assert ended.record["versions"]["highs"]
    header = tomllib.loads((plan / "plan.toml").read_text())
    assert header["params"] == ended.record["params"]
    assert header["strategy"] == ended.record["strategy"]
    assert header["versions"] == ended.record["versions"]
    assert call("verify", fleet, plan).code == 0
    again = mast_opt.solve(mast_opt.read(fleet), "ras", iterations=1, params=header["params"])
    assert again.objective == ended.record["objective"]


def test_a_kind_with_methods_of_its_own_has_parameters_for_every_backend(call: Call, tmp_path: Path) -> None:
    instance, plan = "instances/resource_allocation/nash", tmp_path / "plan"
    assert call("solve", instance, "--param", "first_tangents=3", "--out", plan).code == 0
    assert "first_tangents = 3" in (plan / "plan.toml").read_text(encoding="utf-8")
    refused = call("solve", instance, "--param", "frist_tangents=3")
    assert refused.code == 2
    assert "did you mean 'first_tangents'" in refused.err
    assert "'mast-opt backends resource-allocation' lists its parameters" in refused.err
    assert "most_rounds = 80" in call("backends", "resource-allocation").out
