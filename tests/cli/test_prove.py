"""``prove`` writes proofs that its check accepts, and says what they leave of the stated bound."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Call

INSTANCES = Path(__file__).parents[2] / "instances"


def test_a_proof_is_written_and_checked(call: Call, tmp_path: Path) -> None:
    instance = INSTANCES / "data_placement/hot-dataset"
    plan, out = INSTANCES / "data_placement/best_known/hot-dataset", tmp_path / "proof"
    ended = call("prove", instance, plan, "--out", out)
    assert ended.code == 0
    assert "all of the bound 1.7" in ended.out
    assert "accepted: 17/10 ≤ minimum ≤ 17/10" in call("prove", "--check", out).out
    assert call("export", instance, tmp_path / "own.mps").code == 0
    assert (tmp_path / "own.mps").read_bytes() == (out / "proof.mps").read_bytes()

    text = (out / "proof.vipr").read_text(encoding="utf-8")
    (out / "proof.vipr").write_text(text.replace("RTP range 17/10", "RTP range 9/5"), encoding="utf-8")
    refused = call("prove", "--check", out, "--json")
    assert refused.code == 5
    assert "no step proves" in refused.record["error"]


def test_a_bound_to_be_maximised(call: Call, tmp_path: Path) -> None:
    plan = INSTANCES / "resource_allocation/best_known/total-rate"
    record = call("prove", INSTANCES / "resource_allocation/total-rate", plan, "--out", tmp_path / "p", "--json").record
    assert (record["bound"], record["stated_bound"], record["missing"]) == (36.0, 36.0, 0.0)
    assert record["program_bound"] == "-36"


def test_a_value_that_the_program_states_otherwise(call: Call, tmp_path: Path) -> None:
    plan = INSTANCES / "resource_allocation/best_known/makespan"
    ended = call("prove", INSTANCES / "resource_allocation/makespan", plan, "--out", tmp_path / "p")
    assert "no plan has a value below -0.005" in ended.out
    assert "nothing is compared" in ended.out


@pytest.mark.parametrize("policy", ["nash", "harmonic", "finish-time-fairness"])
def test_a_policy_that_is_no_linear_program(policy: str, call: Call, tmp_path: Path) -> None:
    """The sum of weighted rates is proven, from which the bound follows; without a certificate there are no weights."""
    kind, plan = INSTANCES / "resource_allocation", tmp_path / "plan"
    shutil.copytree(kind / "best_known" / policy, plan)
    ended = call("prove", kind / policy, plan, "--out", tmp_path / "p")
    assert "by a formula that is not linear" in ended.out
    assert "all of the bound" in ended.out
    assert call("prove", "--check", tmp_path / "p").code == 0
    (plan / "certificate.npz").unlink()
    assert "no linear program" in call("prove", kind / policy, plan, "--out", tmp_path / "q").err


def test_calls_that_make_no_sense(call: Call, tmp_path: Path) -> None:
    assert call("prove", tmp_path).code == 2
    assert call("prove", "--check", tmp_path, tmp_path).code == 2
    instance, plan = INSTANCES / "data_placement/hot-dataset", INSTANCES / "data_placement/best_known/hot-dataset"
    assert "exists" in call("prove", instance, plan, "--out", tmp_path).err
    assert call("prove", "--check", tmp_path / "none").code == 5
