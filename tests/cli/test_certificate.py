"""``verify`` computes the bound afresh from certificate.npz, and junk in its place is named, never a traceback."""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import mast_opt
from mast_opt.cli import main
from tests.cli.conftest import Call


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an instance and a plan of tetris."""
    folder = tmp_path_factory.mktemp("certified")
    problem = mast_opt.generate("data-placement", "standard", seed=1, datasets=10, workloads=15, regions=3)
    mast_opt.write(problem, folder / "instance")
    asked = ["--solver", "tetris", "--iterations", "10", "--threads", "2", "--out", str(folder / "plan")]
    assert main(["solve", str(folder / "instance"), *asked]) == 0
    return folder


@pytest.fixture
def plan(solved: Path, tmp_path: Path) -> Path:
    """A copy of the plan, to be spoilt."""
    return Path(shutil.copytree(solved / "plan", tmp_path / "plan"))


def edit(plan: Path, **changes: Callable[[np.ndarray], np.ndarray]) -> None:
    with np.load(plan / "certificate.npz", allow_pickle=False) as kept:
        arrays = dict(kept)
    np.savez_compressed(
        plan / "certificate.npz", **arrays | {name: change(arrays[name]) for name, change in changes.items()}
    )


def claim(plan: Path, bound: float) -> None:
    text = (plan / "plan.toml").read_text(encoding="utf-8")
    (plan / "plan.toml").write_text(re.sub(r"(?m)^bound = .*$", f"bound = {bound!r}", text), encoding="utf-8")


def test_a_sound_certificate_proves_the_bound(call: Call, solved: Path) -> None:
    ended = call("verify", solved / "instance", solved / "plan", "--json")
    assert ended.code == 0
    record = ended.record
    assert record["certified_bound"] == pytest.approx(record["bound"], rel=1e-9)
    assert record["certified_bound"] <= record["objective"]
    assert "certificate.npz proves" in call("verify", solved / "instance", solved / "plan").out


def test_without_a_certificate_nothing_is_proven(call: Call, solved: Path, plan: Path) -> None:
    (plan / "certificate.npz").unlink()
    record = call("verify", solved / "instance", plan, "--json").record
    assert record["certified_bound"] is None
    assert record["error"] is None


def test_a_bound_that_the_certificate_does_not_reach(call: Call, solved: Path, plan: Path) -> None:
    proven = call("verify", solved / "instance", plan, "--json").record["certified_bound"]
    claim(plan, proven * 1.001)
    ended = call("verify", solved / "instance", plan, "--json")
    assert ended.code == 5
    assert [violation["constraint"] for violation in ended.record["violations"]] == ["bound"]
    assert "certificate.npz" in ended.record["violations"][0]["unit"]


def test_a_certificate_outside_its_boxes(call: Call, solved: Path, plan: Path) -> None:
    edit(plan, over=lambda price: price + 1.0)
    ended = call("verify", solved / "instance", plan, "--json")
    assert ended.code == 5
    assert "over" in ended.record["error"]
    assert ended.record["certified_bound"] is None
    assert "over" in call("verify", solved / "instance", plan).out


def test_a_certificate_of_another_objective(call: Call, solved: Path, plan: Path) -> None:
    edit(plan, weights=lambda weights: weights * 2)
    ended = call("verify", solved / "instance", plan, "--json")
    assert ended.code == 5
    assert "weights" in ended.record["error"]


def pickled() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, read_level=np.array([{"a": 1}], object))
    return buffer.getvalue()


def single() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.arange(3))
    return buffer.getvalue()


JUNK = {"empty": b"", "text": b"junk\n", "zip": b"PK\x03\x04" + b"\0" * 40, "pickled": pickled(), "one": single()}


@pytest.mark.parametrize("junk", JUNK)
def test_junk_is_named(call: Call, solved: Path, plan: Path, junk: str) -> None:
    (plan / "certificate.npz").write_bytes(JUNK[junk])
    ended = call("verify", solved / "instance", plan, "--json")
    assert ended.code == 2
    assert "certificate.npz" in ended.record["error"]
    assert "Traceback" not in ended.err


def test_damage_anywhere_is_never_a_traceback(call: Call, solved: Path, plan: Path) -> None:
    sound = (solved / "plan" / "certificate.npz").read_bytes()
    rng = np.random.default_rng(1)
    for _ in range(60):
        damaged = bytearray(sound)
        if rng.random() < 0.5:
            damaged = damaged[: rng.integers(len(sound))]
        else:
            for at in rng.integers(len(sound), size=rng.integers(1, 9)):
                damaged[at] = rng.integers(256)
        (plan / "certificate.npz").write_bytes(damaged)
        ended = call("verify", solved / "instance", plan, "--json")
        assert ended.code in (0, 2, 5)
        assert "Traceback" not in ended.err
        if ended.code == 0:
            assert ended.record["certified_bound"] <= ended.record["objective"] * (1 + 1e-6)


def test_a_folder_in_the_certificates_place(call: Call, solved: Path, plan: Path) -> None:
    (plan / "certificate.npz").unlink()
    (plan / "certificate.npz").mkdir()
    ended = call("verify", solved / "instance", plan)
    assert ended.code == 2
    assert "certificate.npz" in ended.err


def test_a_certified_plan_is_replaced_by_one_without(call: Call, solved: Path, plan: Path) -> None:
    ended = call("solve", solved / "instance", "--out", plan, "--time-limit", "5", "--gap", "0.9")
    assert ended.code == 0
    assert not (plan / "certificate.npz").exists()
