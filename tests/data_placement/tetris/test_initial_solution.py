"""First states of tetris."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mast_opt.problems.data_placement.generate.blank import plain
from mast_opt.problems.data_placement.problem import TERMS
from mast_opt.problems.data_placement.tetris.initial_solution import first_state
from mast_opt.problems.data_placement.tetris.instance_arrays import arrays_of
from mast_opt.problems.data_placement.tetris.state import excess


def test_work_goes_to_its_data_where_no_copy_may_be_added() -> None:
    """The other region has more GPUs free, and a second copy would cost next to nothing."""
    columns = {
        "name": "one copy",
        "regions.labels": ("near", "far"),
        "gpu_types": ("g",),
        "datasets.labels": ("d",),
        "workloads.labels": ("w",),
        "regions.storage_mb": np.array([10, 10]),
        "regions.cpu_mcores": np.array([1, 1]),
        "regions.supply_mgpu": np.array([[1000], [2000]]),
        "datasets.size_mb": np.array([1]),
        "datasets.stored": np.array([[True, False]]),
        "datasets.copies_max": np.array([1]),
        "workloads.cpu_mcores": np.array([0]),
        "options.workload": np.array([0]),
        "options.gpu_type": np.array([0]),
        "options.mgpu": np.array([1000]),
        "reads.workload": np.array([0]),
        "reads.dataset": np.array([0]),
        "reads.mb_per_day": np.array([10]),
    }
    problem = plain(work_tier=np.array([0]), columns=columns)
    problem = problem.with_columns({"objective": replace(problem.objective, peak_levels={0: 0.0})})
    weights = {**TERMS, "copy": 0.01}
    assert first_state(arrays_of(problem, weights), False, 1).region.tolist() == [0]
    two = problem.with_columns({"datasets.copies_max": np.array([2])})
    assert first_state(arrays_of(two, weights), False, 1).region.tolist() == [1]


def test_work_whose_data_fits_nowhere_together_is_left_out() -> None:
    """Both regions are full of what the other work reads, and a plan may neither read remotely nor exceed storage."""
    columns = {
        "name": "no room for both",
        "regions.labels": ("left", "right"),
        "gpu_types": ("g",),
        "datasets.labels": ("of left", "of right"),
        "workloads.labels": ("one", "both", "other"),
        "regions.storage_mb": np.array([6, 6]),
        "regions.cpu_mcores": np.array([1, 1]),
        "regions.supply_mgpu": np.array([[4000], [4000]]),
        "datasets.size_mb": np.array([6, 6]),
        "datasets.stored": np.array([[True, False], [False, True]]),
        "datasets.copies_max": np.array([2, 2]),
        "workloads.cpu_mcores": np.array([0, 0, 0]),
        "options.workload": np.array([0, 1, 2]),
        "options.gpu_type": np.array([0, 0, 0]),
        "options.mgpu": np.array([1000, 2000, 1000]),
        "reads.workload": np.array([0, 1, 1, 2]),
        "reads.dataset": np.array([0, 0, 1, 1]),
        "reads.mb_per_day": np.array([0, 0, 0, 0]),
    }
    problem = plain(work_tier=np.array([0, 0, 0]), columns=columns)
    problem = replace(problem, remote_reads=False, may_refuse=True)
    arrays = arrays_of(problem, dict(problem.objective.weights))
    state = first_state(arrays, True, 1)
    assert state.region.tolist() == [0, 2, 1]
    assert excess(arrays, state, True) == 0.0
    assert excess(arrays, first_state(arrays, False, 1), False) > 0.0
