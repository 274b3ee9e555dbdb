"""The committed instances are whole, and their READMEs say what is in them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from mast_opt.planner.io import read
from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.analysis.static_conflicts import conflicts
from mast_opt.problems.data_placement.plan import today
from mast_opt.problems.data_placement.verification.verifier import verify

FOLDER = Path(__file__).parents[2] / "instances" / "data_placement"


def stated(name: str) -> dict[str, list[float]]:
    """Row head of the README's first table → the numbers in that row."""
    rows = re.findall(r"^\| (\w+) \| (.*) \|$", (FOLDER / name / "README.md").read_text(), re.MULTILINE)
    return {
        head: [float(number.replace(",", "")) for number in re.findall(r"\d[\d,.]*\d|\d", text)] for head, text in rows
    }


def gpus_of(problem: DataPlacement) -> np.ndarray:
    gpus = np.zeros(len(problem.workloads), np.int64)
    gpus[problem.options.workload] = problem.options.mgpu // 1000
    return gpus


@pytest.mark.parametrize("name", ["cloud-regions", "cloud-links"])
def test_the_readme_counts_what_is_there(name: str) -> None:
    problem, rows = read(FOLDER / name), stated(name)
    gpus = gpus_of(problem)
    assert conflicts(problem) == ()
    assert problem.name == name
    assert rows["regions"][0] == len(problem.regions)
    assert rows["GPUs"][:2] == [problem.regions.supply_mgpu.sum() / 1000, len(problem.gpu_types)]
    assert rows["workloads"][:3] == [len(gpus), np.count_nonzero(gpus), gpus.sum()]
    assert rows["datasets"][:2] == [len(problem.datasets), round(problem.datasets.size_mb.sum() / 1e6)]
    assert rows["reads"][:2] == [len(problem.reads), round(problem.reads.mb_per_day.sum() / 1e6)]


def test_cloud_regions_begins_with_a_plan() -> None:
    problem = read(FOLDER / "cloud-regions")
    plan = today(problem)
    assert plan is not None
    verdict = verify(problem, plan)
    assert verdict.violations == ()
    assert f"costs {verdict.objective:.2f}" in (FOLDER / "cloud-regions" / "README.md").read_text()
    assert verdict.metrics["peak_ratio"] == pytest.approx(3.64, abs=0.005)
    assert verdict.metrics["peak_ratio_tier0"] == pytest.approx(3.27, abs=0.005)
    assert verdict.metrics["non_collocation_rate"] == pytest.approx(0.54, abs=0.005)
    assert verdict.terms["remote"] == pytest.approx(0.58, abs=0.005)


def test_cloud_links_prices_every_pair_of_regions() -> None:
    problem = read(FOLDER / "cloud-links")
    regions = len(problem.regions)
    assert problem.links is not None
    assert len(problem.links) == regions * (regions - 1)
    assert problem.objective.weights["egress"] > 0
    ends = stated("cloud-links")["links"][1:]
    capacity, price = problem.links.capacity_mb_per_day / 1e6, problem.links.price_usd_per_tb
    assert ends == [round(capacity.min()), round(capacity.max()), price.min(), price.max()]


@pytest.mark.parametrize("name", ["cloud-regions", "cloud-links"])
def test_the_folder_stays_small_and_its_sources_are_credited(name: str) -> None:
    assert sum(file.stat().st_size for file in (FOLDER / name).iterdir()) < 300_000
    assert "NOTICE.md" in (FOLDER / name / "README.md").read_text()
    notice = (FOLDER / "NOTICE.md").read_text()
    for source in ("CC BY 4.0", "msr-fiddle/philly-traces", "kubernetes-scheduler-simulator", "skyplane"):
        assert source in notice
