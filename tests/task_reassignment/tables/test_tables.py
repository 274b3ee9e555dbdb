"""Tables of task reassignment: what a checksum covers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

import mast_opt


def test_a_checksum_mentions_balanced_only_where_a_machine_is_exempt() -> None:
    """Checksums of instances without the column stay what they were before it was added."""
    problem = mast_opt.read(Path(__file__).parents[3] / "instances" / "task_reassignment" / "crowded-machine")
    exempt = replace(problem, machines=replace(problem.machines, balanced=np.arange(len(problem.machines)) > 0))
    assert mast_opt.checksum(problem).startswith("sha256:794b525e")
    assert mast_opt.checksum(exempt) != mast_opt.checksum(problem)
