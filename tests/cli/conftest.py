"""Instances on disk and a way to run commands on them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import mast_opt
from mast_opt.cli import main

TABLES = {
    "regions.csv": "region,storage_tb,cpu_cores\neast,10,10\nwest,10,10\n",
    "gpu_supply.csv": "region,gpu_type,gpus\neast,A100,8\nwest,A100,8\n",
    "datasets.csv": "dataset,size_tb\nclicks,3\nlogs,2\n",
    "replicas.csv": "dataset,region\nclicks,east\nlogs,west\n",
    "workloads.csv": "workload,tier,cpu_cores\nrank,0,4\nspam,1,3\n",
    "gpu_demand.csv": "workload,gpu_type,gpus\nrank,A100,8\nspam,A100,4\n",
    "reads.csv": "workload,dataset,tb_per_day\nrank,clicks,1\nspam,logs,1\n",
}
"""An instance with the answer in plain sight: leave everything where its data is. Only storage costs: 0.1 · 1 copy,
and the peak: tier 0 sees 8 of 8 GPUs, all tiers 8 of 8, which is 1 + 1."""
OPTIMUM = 2.1


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def record(self) -> dict[str, Any]:
        """stdout as the one JSON object that it has to be."""
        record = json.loads(self.out)
        assert isinstance(record, dict)
        return record


Call = Callable[..., Ended]


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Call:
    """Runs a command in this process."""

    def run(*tokens: object) -> Ended:
        capfd.readouterr()
        code = main([str(token) for token in tokens])
        out, err = capfd.readouterr()
        return Ended(code, out, err)

    return run


def command(*tokens: object) -> list[str]:
    """The command line of a process of its own."""
    return [sys.executable, "-m", "mast_opt", *(str(token) for token in tokens)]


def spawn(*tokens: object, env: Mapping[str, str] | None = None, **given: Any) -> Ended:
    """Runs a command in a process of its own."""
    ended = subprocess.run(
        command(*tokens), capture_output=True, encoding="utf-8", env={**os.environ, **(env or {})}, check=False, **given
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def write_tables(folder: Path, changes: Mapping[str, str] | None = None, settings: str = "") -> Path:
    """The small instance, with some of its files replaced and something added to its instance.toml."""
    folder.mkdir()
    head = 'format = "mast-opt/1"\nkind = "data-placement"\nname = "two-regions"\n'
    levels = "\n[objective.peak_levels]\n0 = 0.0\n1 = 0.0\n"
    (folder / "instance.toml").write_text(head + settings + levels, encoding="utf-8")
    for name, text in {**TABLES, **(changes or {})}.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def instance(tmp_path: Path) -> Path:
    """The small instance."""
    return write_tables(tmp_path / "instance")


@pytest.fixture
def contradiction(tmp_path: Path) -> Path:
    """An instance that is seen to be infeasible: both datasets are pinned to a region that cannot hold them."""
    pins = "dataset,region,rule\nclicks,east,pinned\nlogs,east,pinned\n"
    small = "region,storage_tb,cpu_cores\neast,4,10\nwest,10,10\n"
    return write_tables(tmp_path / "contradiction", {"rules.csv": pins, "regions.csv": small})


@pytest.fixture
def packing(tmp_path: Path) -> Path:
    """An instance that only a solver sees to be infeasible: three workloads of six cores in two regions of ten."""
    work = "workload,tier,cpu_cores\nrank,0,6\nspam,1,6\nfeed,1,6\n"
    return write_tables(tmp_path / "packing", {"workloads.csv": work})


@pytest.fixture
def scenarios(tmp_path: Path) -> Path:
    """A file of scenarios for the small instance."""
    lost = '[[scenario]]\nname = "east is lost"\nlose_regions = ["east"]\n'
    path = tmp_path / "what-if.toml"
    path.write_text(lost + '[[scenario]]\nname = "growth"\nweight = 0.5\ngrow_demand = { all = 1.25 }\n')
    return path


@pytest.fixture
def hard(tmp_path: Path) -> Path:
    """An instance that no solver finishes in the time of a test, with a plan that is found at once."""
    problem = mast_opt.generate("data-placement", "standard", seed=1, datasets=60, workloads=90, regions=8)
    mast_opt.write(problem, tmp_path / "hard")
    return tmp_path / "hard"


@pytest.fixture
def plan(call: Call, instance: Path, tmp_path: Path) -> Path:
    """A plan of the instance, on disk."""
    assert call("solve", instance, "--out", tmp_path / "plan").code == 0
    return tmp_path / "plan"
