"""Which rows of GPUs are rounded for gangs that do not divide."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mast_opt
from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.generate import FAMILIES
from mast_opt.problems.data_placement.tetris.instance_arrays import arrays_of
from mast_opt.problems.data_placement.tetris.lagrangian.mir_rows import MirRows, mir_rows_of
from mast_opt.problems.data_placement.tetris.lagrangian.params import RelaxationParams
from mast_opt.problems.data_placement.tetris.lagrangian.relaxation import Relaxation
from mast_opt.problems.data_placement.verification.peak_bound import bin_packing_peak_bound

CLOUD = Path(__file__).parents[4] / "instances" / "data_placement" / "cloud-links"
PARAMS = RelaxationParams()
REGIONS, GANG = 2, 64_000


def on_any_of(types: int, gangs: int) -> DataPlacement:
    """So many equal gangs, each of which may run on any of so many types."""
    problem = FAMILIES["standard"].generate(np.random.default_rng(1), datasets=3, workloads=gangs, regions=REGIONS)
    return problem.with_columns(
        {
            "gpu_types": tuple(f"k{k}" for k in range(types)),
            "regions.supply_mgpu": np.full((REGIONS, types), 100_000),
            "regions.gpu_price_micro": np.zeros((REGIONS, types), np.int64),
            "options.workload": np.repeat(np.arange(gangs), types),
            "options.gpu_type": np.tile(np.arange(types), gangs),
            "options.mgpu": np.full(gangs * types, GANG),
        }
    )


def rounded(problem: DataPlacement) -> MirRows:
    arrays = arrays_of(problem, dict(problem.objective.weights))
    return mir_rows_of(arrays, bin_packing_peak_bound(problem), problem.workloads.splittable, PARAMS)


@pytest.mark.parametrize("types", [1, 3])
@pytest.mark.parametrize(("each", "worth_it"), [(PARAMS.crowd, True), (PARAMS.crowd + 1, False)])
def test_a_gang_counts_once_however_many_types_it_may_run_on(types: int, each: int, worth_it: bool) -> None:
    sizes = rounded(on_any_of(types, each * REGIONS * types)).size
    assert sizes.shape[0] == types
    assert (GANG in sizes) is worth_it


def test_the_bound_of_a_real_fleet_sees_its_gangs() -> None:
    """Six types, most work runs on any of several; without roundings it is at 11.6."""
    problem = mast_opt.read(CLOUD)
    relaxation = Relaxation(
        arrays_of(problem, dict(problem.objective.weights)),
        bin_packing_peak_bound(problem),
        problem.workloads.splittable,
    )
    relaxation.step(1500)
    assert relaxation.bound > 15.0
