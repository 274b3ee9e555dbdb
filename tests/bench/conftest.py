"""A small suite on disk, and results without runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mast_opt.planner.bench.suites.suite import Suite
from mast_opt.planner.bench.suites.toml_reader import read_suite

SUITE = """
title = "Two regions"
time_limits_s = [2]
threads = 1
solvers = ["highs"]

[contestants."highs strong"]
solver = "highs"
formulation = "strong"
options = { mip_heuristic_effort = 0.1 }

[[entry]]
name = "tiny"
instances = ["tiny.json"]
solvers = ["highs", "highs strong"]

[[entry]]
name = "drawn"
kind = "job-placement"
family = "study"
sizes = { regions = 1, clusters = 1, servers = 2, fill_percent = 80 }
instance_seeds = [3, 4]

[[entry]]
name = "public"
importer = "gap"
data = ["gap/*.txt"]

[[known_issue]]
contestant = "highs"
words = "is here for the tests."
"""
INSTANCES = Path(__file__).parents[2] / "instances"


@pytest.fixture
def suite_file(tmp_path: Path) -> Path:
    (tmp_path / "tiny.json").write_text((INSTANCES / "job_placement" / "tiny-regions.json").read_text())
    path = tmp_path / "two.toml"
    path.write_text(SUITE)
    return path


@pytest.fixture
def suite(suite_file: Path) -> Suite:
    return read_suite(suite_file)


def result(contestant: str, objective: float | None, **more: Any) -> dict[str, Any]:
    """A result that says no more than it must."""
    return {
        "key": f"{contestant}-{objective}-{more.get('instance', 'i')}",
        "suite": "two",
        "entry": "e",
        "instance": "i",
        "source": {"kind": "job-placement"},
        "contestant": {"name": contestant, "solver": contestant},
        "time_limit_s": 10.0,
        "seed": 0,
        "threads": 1,
        "status": "NO_SOLUTION" if objective is None else "FEASIBLE",
        "objective": objective,
        "bound": None,
        "gap": None,
        "runtime_s": {"formulate": 0.5, "solve": 1.0, "verify": 0.0, "wall": 4.0},
        "peak_memory_mb": 100.0,
        "events": [] if objective is None else [[0.5, objective * 2, None], [1.0, objective, None]],
        "versions": {"mast-opt": "0.1.0"},
        "machine": {"processor": "P", "processors": 2, "memory_gb": 4, "system": "Linux", "python": "3.11.7"},
        "commit": "abc",
        "ended": "2026-01-01T00:00:00+00:00",
        **more,
    }
