"""Every reader takes a file of ours for the same program: rows, columns, costs, and the constant of the objective."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import UsageError
from mast_opt.planner.solving.export_files import formulate
from mast_opt.problems import backends
from mast_opt.problems.mip import Mip
from mast_opt.problems.mip.export import write_lp, write_mps
from tests.backends.programs import INF, program
from tests.mathprog import assert_same
from tests.mip.readers import READERS, limited, written

INSTANCES = Path(__file__).parents[2] / "instances"
WRITERS = {".lp": write_lp, ".mps": write_mps}
CASES = [(reader, suffix) for suffix in WRITERS for reader in READERS if (reader, suffix) != ("ortools", ".lp")]
"""The .lp format of OR-Tools is another one, that of lp_solve."""
NAMES = sorted(
    str(path.relative_to(INSTANCES))
    for path in INSTANCES.glob("*/*")
    if path.suffix != ".md" and path.name != "best_known" and path.parent.name != "traces"
)


@cache
def program_of(name: str) -> Mip | None:
    """The program of a committed instance; None where a policy is no linear program."""
    try:
        return formulate(mast_opt.read(INSTANCES / name))
    except UsageError:
        return None


def large(name: str) -> bool:
    """Whether reading takes seconds."""
    return Path(name).name in ("cloud-links", "cloud-regions", "alibaba-philly")


def awkward(offset: float) -> Mip:
    """Two-sided, free and empty rows; columns that are free, negative, fixed, unused; and a constant."""
    rows = [([3, 1, 0, 0], -2, 4), ([1, 0, 2, 0], 0.1, INF), ([0, 1, 1, 0], 2, 2), ([1, 1, 1, 0], -INF, INF)]
    lower, upper = [-INF, -3, 0, 1], [INF, -1, INF, 1]
    integral = [False, True, True, False]
    return program([0.1, -1e12, 3, 0], rows, lower=lower, upper=upper, integral=integral, offset=offset)


@pytest.mark.parametrize(("reader", "suffix"), CASES)
@pytest.mark.parametrize("offset", [0.0, 5.0, -7.25, 1e-7])
def test_a_constant_is_read_by_all(reader: str, suffix: str, offset: float, tmp_path: Path) -> None:
    mip = awkward(offset)
    WRITERS[suffix](mip, tmp_path / f"m{suffix}")
    assert_same(limited(READERS[reader](tmp_path / f"m{suffix}")), written(mip, suffix))


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("name", NAMES)
def test_committed_instances_are_read_alike(name: str, suffix: str, tmp_path: Path) -> None:
    mip = program_of(name)
    if mip is None:
        return
    path = tmp_path / f"m{suffix}"
    WRITERS[suffix](mip, path)
    expected = written(mip, suffix)
    for reader in [reader for reader, of in CASES if of == suffix and (reader == "glpk" or not large(name))]:
        assert_same(limited(READERS[reader](path)), expected)


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.second_tier
def test_cbc_reads_the_constant(name: str, suffix: str, tmp_path: Path) -> None:
    """CBC cannot be asked what it has read, so it values a point: all columns fixed, no row in the way."""
    mip = program_of(name)
    if mip is None or large(name):
        return
    at = np.where(np.isfinite(mip.col_lower), mip.col_lower, 0.0) + mip.integral
    free = np.full(len(mip.row_lower), np.inf)
    point = replace(mip, offset=mip.offset + 2.5, col_lower=at, col_upper=at, row_lower=-free, row_upper=free)
    WRITERS[suffix](point, tmp_path / f"m{suffix}")
    cbc = backends.get("cbc")._path()  # type: ignore[attr-defined]
    command = [cbc, f"m{suffix}", "-preprocess", "off", "-solve", "-solution", "answer.txt", "-quit"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    words = (tmp_path / "answer.txt").read_text().splitlines()[0]
    assert words.startswith("Optimal - objective value ")
    assert float(words.split()[-1]) == pytest.approx(point.objective(at), rel=1e-8, abs=1e-8)
