"""What can be asked of an instance and a plan: prices, alternatives, scenarios, what more is worth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mast_opt
from mast_opt.cli import main
from mast_opt.core.errors import UsageError
from mast_opt.problems.resource_allocation import Plan
from mast_opt.problems.resource_allocation.analysis.binding_limits import binding
from tests.resource_allocation.reference import Dense
from tests.resource_allocation.support import INSTANCES, gavel, small


def test_a_rate_is_held_by_a_resource_at_a_price() -> None:
    problem = gavel("max-min")
    plan = mast_opt.solve(problem).plan
    assert plan is not None
    found = binding(problem, plan, 0)
    assert found.spare == pytest.approx(0, abs=1e-7)
    assert found.price == pytest.approx([1, 0, 0], abs=1e-9)
    assert found.worth == pytest.approx([2 - 28 / 19, 0, 0], abs=1e-7)
    (reasons,) = mast_opt.explain(problem, plan, ["job-0"]).reasons
    assert "one more v100 would add 0.5263 and the job runs all the time" in reasons.now
    assert "job-0@p100 52.6%, job-0@v100 47.4% of the time" in reasons.now
    changes = {option.place: option.change for option in reasons.options}
    assert changes["job-0@k80"] == pytest.approx(0.5 / (7 / 6) - 24 / 19)
    assert [option.forbidden for option in reasons.options if option.place == "job-0@v100"] == [
        ("v100 (1) would be exceeded by 0.5263",)
    ]


def test_a_rate_that_could_be_larger() -> None:
    problem = gavel("cost", min_rate=(1, 1))
    plan = mast_opt.solve(problem).plan
    assert plan is not None
    found = binding(problem, plan, 0)
    assert found.spare == pytest.approx(Dense(problem).most(0, plan.rate) - 1, rel=1e-6)
    assert "it could have 1 more" in found.sentence(problem)


@pytest.mark.parametrize("seed", range(3))
def test_prices_and_what_one_more_unit_adds(seed: int) -> None:
    problem = small(seed, "max-min")
    plan = mast_opt.solve(problem).plan
    assert plan is not None
    for job in range(4):
        least = np.where(np.arange(4) == job, 0.0, plan.rate * (1 - 1e-9))
        found = binding(problem, plan, job)
        for k, price in enumerate(found.price.tolist()):
            for units in (1e-4, 1.0):
                amount = problem.resources.amount + units * (np.arange(2) == k)
                more = replace(problem, resources=replace(problem.resources, amount=amount))
                gain = Dense(more).most(job, least) - Dense(problem).most(job, least)
                assert gain <= price * units + 1e-7 * found.best
            assert found.worth[k] == pytest.approx(gain, abs=1e-6 * found.best)


def test_a_waiting_job_and_one_in_no_configuration_are_said_to_be() -> None:
    problem = gavel("total-rate")
    plan = Plan.of_shares(problem, np.zeros(6))
    (reasons,) = mast_opt.explain(problem, plan, ["job-1"]).reasons
    assert (
        reasons.now
        == "runs at rate 0 (0 of its fair rate; it could have 3 more while the others keep theirs): in no configuration"
    )


def test_what_more_is_worth_is_in_the_policys_sense() -> None:
    most = mast_opt.read(INSTANCES / "total-rate")
    answer = mast_opt.marginal_values(most, integers="free")
    assert answer.objective == pytest.approx(36)
    assert {one.place: one.value for one in answer.values} == pytest.approx({"gpu": 2})
    least = mast_opt.read(INSTANCES / "makespan")
    answer = mast_opt.marginal_values(least, integers="free")
    assert answer.objective == pytest.approx(200)
    assert {one.place: one.value for one in answer.values}["v100"] == pytest.approx(200 - 500 / 3)
    with pytest.raises(UsageError, match="ask with integers = 'free'"):
        mast_opt.marginal_values(least)


def test_scenarios() -> None:
    problem = mast_opt.read(INSTANCES / "max-min")
    scenarios = [
        mast_opt.Scenario("no v100", {"lose_resources": ["v100"]}),
        mast_opt.Scenario("two", {"add_resources": {"v100": 1}}),
        mast_opt.Scenario("bert first", {"scale_weights": {"bert": 2}}),
        mast_opt.Scenario("floors", {"scale_floors": 3}),
    ]
    answer = mast_opt.whatif(problem, scenarios)
    found = {one.name: one.solution.objective for one in answer.outcomes}
    assert found["no v100"] == pytest.approx(9 / 13)
    assert found["two"] == pytest.approx(1.5)
    assert found["bert first"] == pytest.approx(6 / 7)
    assert found["floors"] == pytest.approx(24 / 19)
    lost = answer.outcomes[0]
    assert lost.base_verdict is not None
    assert [violation.name for violation in lost.base_verdict.violations] == ["capacity[v100]"]
    assert lost.moved["changed_shares"] >= 2
    assert lost.moved["shifted_time"] == pytest.approx(1, abs=0.6)
    for wrong in ({"add_resources": {"v100": -2}}, {"scale_weights": {"bert": 0}}, {"lose_resources": ["h100"]}):
        with pytest.raises(UsageError):
            mast_opt.whatif(problem, [mast_opt.Scenario("wrong", wrong)])


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    instance, plan = str(INSTANCES / "max-min"), str(tmp_path / "plan")
    assert main(["solve", instance, "--out", plan]) == 0
    assert "policy max-min" in capsys.readouterr().out
    assert main(["verify", instance, plan]) == 0
    assert "certificate.npz proves that every plan has objective ≤ 1.26316" in capsys.readouterr().out
    toml = tmp_path / "plan" / "plan.toml"
    stated = toml.read_text()
    toml.write_text(stated.replace("bound = 1.26", "bound = 1.25"))
    assert main(["verify", instance, plan]) == 5
    assert "bound" in capsys.readouterr().out
    toml.write_text(stated.replace("objective = 1.26", "objective = 1.36"))
    assert main(["verify", instance, plan]) == 5
    toml.write_text(stated)
    assert main(["report", instance, plan, "--out", str(tmp_path / "report.html")]) == 0
    assert main(["diff", instance, plan, plan]) == 0
    assert main(["marginal", instance, "--free"]) == 0
    assert main(["export", instance, str(tmp_path / "x.lp")]) == 0
    assert main(["steps", instance, plan]) == 2
    assert main(["solve", instance, "--solver", "cpsat"]) == 2
    assert "choose highs, scip or cbc" in capsys.readouterr().err
