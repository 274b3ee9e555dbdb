"""Levels of peaks in files: stated in full, part of the checksum, and refused where there is no term peak."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import mast_opt
from mast_opt.core.errors import InstanceError
from mast_opt.planner.io.checksum import checksum
from mast_opt.problems.data_placement import DataPlacement
from tests.data_placement.workshop import PROBLEM
from tests.instance_rows import JobRows


def with_levels(levels: dict[int, float]) -> DataPlacement:
    return replace(PROBLEM, objective=replace(PROBLEM.objective, peak_levels=levels))


def test_defaults_are_written_in_full(tmp_path: Path) -> None:
    mast_opt.write(with_levels({}), tmp_path / "plain")
    text = (tmp_path / "plain" / "instance.toml").read_text()
    assert "[objective.peak_levels]\n0 = 0.9\n1 = 1.0\n" in text
    assert mast_opt.read(tmp_path / "plain") == with_levels({0: 0.9, 1: 1.0})


def test_levels_count_in_the_checksum_and_zeros_do_not() -> None:
    texts = {checksum(with_levels(levels)) for levels in ({}, {0: 0.9, 1: 1.0}, {0: 0.8}, {0: 0.0, 1: 0.0})}
    assert len(texts) == 3


def test_another_kind_has_no_levels() -> None:
    with pytest.raises(InstanceError, match="peak_levels"):
        JobRows(objective={"peak_levels": {"0": 1.0}}).build()
