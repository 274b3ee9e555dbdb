"""A program whose entries point outside of it is refused before compiled code writes to where they point."""

from __future__ import annotations

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import InstanceError, UsageError
from mast_opt.problems.mip.builder import MipBuilder


@pytest.mark.parametrize("position", [-1, 2, 10**9])
@pytest.mark.parametrize("what", ["row", "column", "term"])
def test_a_position_out_of_range(what: str, position: int) -> None:
    builder = MipBuilder("p")
    builder.columns("x", [("a", "b")])
    rows = builder.rows("r", [("a", "b")], upper=1.0)
    rows.add(np.array([0, position if what == "row" else 1]), np.array([0, position if what == "column" else 1]), 1.0)
    builder.term("cost", np.array([position if what == "term" else 0]))
    with pytest.raises(UsageError, match="expected 0 to 1"):
        builder.build({"cost": 1.0})


def test_an_instance_with_a_position_out_of_range_does_not_crash_the_process() -> None:
    problem = mast_opt.generate("data-placement", seed=1, datasets=4, workloads=4, regions=2)
    reads = problem.reads.dataset.copy()
    reads[0] = 10**6
    with pytest.raises(InstanceError, match=r"reads\.dataset\[0\]: found '1000000'"):
        problem.with_columns({"reads.dataset": reads})
