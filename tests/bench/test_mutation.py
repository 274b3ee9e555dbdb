"""What is argued for in ``mutation-arguments.toml`` still stands in the code."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def mutation() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutation", ROOT / "benchmarks" / "mutation.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutation"] = module
    spec.loader.exec_module(module)
    return module


def test_every_argument_is_about_mutants_that_exist(mutation: ModuleType) -> None:
    arguments = mutation.arguments()
    assert arguments
    for name in sorted({one["module"] for one in arguments}):
        module = ROOT / name
        lines = [line.strip() for line in module.read_text(encoding="utf-8").splitlines()]
        every = mutation.mutants(module)
        for argument in arguments:
            if argument["module"] == name:
                assert argument["why"]
                assert any(mutation.covers(argument, mutant, lines) for mutant in every), argument


def test_mutants_that_are_argued_for_are_not_drawn(mutation: ModuleType) -> None:
    module = ROOT / "mast_opt/problems/data_placement/migration/exact_search.py"
    left = {one.words for one in mutation.undecided(module)}
    assert {"50 → 49", "50 → 51"} <= {one.words for one in mutation.mutants(module)}
    assert "50 → 49" not in left
    (other,) = (one for one in mutation.undecided(module) if one.words == "50 → 51")
    assert "SIZE = 51" in other.source()
