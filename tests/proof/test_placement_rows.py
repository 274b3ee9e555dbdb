"""Certificates of data placement are translated: with their rows the linear relaxation proves what they prove."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from mast_opt.planner.proof.checker import check_folder
from mast_opt.planner.proof.placement_rows import placement_rows
from mast_opt.planner.proof.write_proof import PROOF, write_proof
from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.formulation.formulation import base
from mast_opt.problems.data_placement.generate import FAMILIES
from mast_opt.problems.data_placement.tetris.kept_certificate import kept_certificate
from mast_opt.problems.data_placement.verification.certificate import Certificate
from mast_opt.problems.data_placement.verification.certificate_tree_cuts import KeptTrees
from tests.data_placement.certificates import boxes, random_certificate, random_trees
from tests.data_placement.strategies import problems
from tests.data_placement.support import proven
from tests.examples import examples


def root_bound(problem: DataPlacement, certificate: Certificate, *, rows: bool = True) -> tuple[float, str] | None:
    """The bound that one linear program proves, and the proof; None where the problem has no plan."""
    mip = base(problem).mip.minimise(certificate.weights)
    best = proven(mip)
    if best.x is None:
        return None
    rows_of = partial(placement_rows, problem, certificate.arrays()) if rows else None
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "proof"
        found = write_proof(mip, best.x, None, folder, time_limit_s=0.0, most_leaves=1, rows_of=rows_of)
        assert check_folder(folder).bound == found.bound
        assert found.bound is not None
        return float(found.bound), (folder / PROOF).read_text(encoding="utf-8")


@examples(30)
@given(problem=problems(splits=False, roomy=True), seed=st.integers(0, 2**32), room=st.floats(1.0, 2.0))
def test_rows_of_any_certificate_prove_its_bound(problem: DataPlacement, seed: int, room: float) -> None:
    share = int(problem.workloads.cpu_mcores.sum() * room) // len(problem.regions) + 1
    tight = replace(problem, regions=replace(problem.regions, cpu_mcores=np.full(len(problem.regions), share)))
    certificate = replace(random_certificate(tight, seed), trees=random_trees(tight, np.random.default_rng(seed), 10.0))
    found = root_bound(tight, certificate)
    event(f"feasible: {found is not None}")
    if found is not None:
        bound, text = found
        event(f"derived rows are used: {' uns ' in text}")
        wanted = certificate.bound(tight)
        assert bound >= wanted - 1e-7 * max(1.0, abs(wanted))


def tight_instance(**columns: object) -> DataPlacement:
    """Three pieces of work and one dataset, which all of them read, in two regions."""
    problem = FAMILIES["standard"].generate(np.random.default_rng(1), datasets=1, workloads=3, regions=2)
    three = np.arange(3)
    same: dict[str, object] = {
        "gpu_types": ("H100",),
        "workloads.tier": np.zeros(3, np.int64),
        "workloads.cpu_mcores": np.full(3, 60_000),
        "workloads.splittable": np.zeros(3, np.bool_),
        "tiers": (0,),
        "regions.supply_mgpu": np.full((2, 1), 100_000),
        "regions.gpu_price_micro": np.zeros((2, 1), np.int64),
        "regions.cpu_mcores": np.full(2, 1_000_000),
        "options.workload": three,
        "options.gpu_type": np.zeros(3, np.int64),
        "options.mgpu": np.full(3, 64_000),
        "reads.workload": three,
        "reads.dataset": np.zeros(3, np.int64),
        "reads.mb_per_day": np.full(3, 1_000),
        "datasets.copies_min": np.ones(1, np.int64),
        "datasets.copies_max": np.ones(1, np.int64),
    }
    return problem.with_columns(same | columns)


def priced(problem: DataPlacement, term: str, **prices: np.ndarray) -> Certificate:
    """A certificate of one term with these prices and no others, rounded by gangs of 64 GPUs."""
    weights = dict.fromkeys(problem.objective.weights, 0.0) | {term: 1.0}
    none = {name: np.zeros_like(most) for name, most in boxes(problem).items()}
    none |= {"worst": np.zeros((2, 1, 1, 2)), "over": np.zeros((2, 1, 1, 2))}
    return kept_certificate(problem, weights, SimpleNamespace(**none | prices), np.array([[64_000]]))


def both(problem: DataPlacement, certificate: Certificate) -> tuple[float, float, str]:
    """The bounds without and with the rows of a certificate, and the proof."""
    plain, found = root_bound(problem, certificate, rows=False), root_bound(problem, certificate)
    assert plain is not None
    assert found is not None
    return plain[0], *found


def test_gangs_that_do_not_fit_are_rounded() -> None:
    """Three gangs of 64 and two regions of 100 GPUs: 28 GPUs are too few somewhere, and none by volume."""
    problem = tight_instance()
    prices = np.zeros((2, 1, 1, 2))
    prices[..., 1] = 1 / 200_000
    plain, bound, text = both(problem, priced(problem, "overload", over=prices))
    assert plain == pytest.approx(0.0, abs=1e-9)
    assert bound == pytest.approx(28 / 200)
    assert " uns " in text


def test_the_peak_of_gangs_is_forced() -> None:
    """Two of three gangs of 64 share a region of 100: its peak is 1.28, and 0.96 by volume."""
    problem = tight_instance()
    plain, bound, text = both(problem, priced(problem, "peak"))
    level = float(problem.peak_level[0])
    assert plain == pytest.approx(max(0.0, 0.96 - level))
    assert bound == pytest.approx(1.28 - level)
    assert " uns " in text


@pytest.mark.parametrize("root", ["dataset", "workload"])
def test_work_that_does_not_fit_with_its_data_reads_remotely(root: str) -> None:
    """Of three readers that need 60 cores each a region of 130 holds two: one reads remotely, and none by halves."""
    problem = tight_instance(**{"regions.cpu_mcores": np.full(2, 130_000), "options.mgpu": np.full(3, 1_000)})
    from_data = root == "dataset"
    trees = KeptTrees(
        root=np.array([0, 0] if from_data else [1, 1]),
        region=np.array([0, 1]),
        limit=np.zeros(2, np.int64),
        price=np.full(2, 1e-9),
        start=np.array([0, 3, 6]),
        read=np.array([0, 1, 2] * 2, np.int32),
        parent=np.array([-1, -1, -1] * 2 if from_data else [-1, 0, 0] * 2, np.int32),
    )
    certificate = replace(priced(problem, "remote"), trees=trees)
    plain, bound, text = both(problem, certificate)
    assert plain < bound
    assert bound >= certificate.bound(problem)
    assert " uns " in text
    if from_data:
        assert bound == pytest.approx(1 / 3)
