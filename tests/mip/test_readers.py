"""Every reader takes a file of ours for the same program: rows, columns, costs, and the constant of the objective."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import mast_opt
from mast_opt.core.errors import UsageError
from mast_opt.planner.solving.export_files import formulate
from mast_opt.problems.mip import Mip
from mast_opt.problems.mip.export import write_lp, write_mps
from tests.backends.programs import INF, program
from tests.mathprog import assert_same
from tests.mip.readers import READERS, limited, written

INSTANCES = Path(__file__).parents[2] / "instances"
WRITERS = {".lp": write_lp, ".mps": write_mps}
FOREIGN = ("ortools", ".lp")
"""The .lp format of OR-Tools is another one, that of lp_solve."""
CASES = [
    (reader, suffix) for suffix in WRITERS for reader in READERS if reader != "cbc" and (reader, suffix) != FOREIGN
]
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
@pytest.mark.parametrize("name", ["awkward", *NAMES])
@pytest.mark.second_tier
def test_cbc_reads_the_same(name: str, suffix: str, tmp_path: Path) -> None:
    mip = awkward(5.0) if name == "awkward" else program_of(name)
    if mip is None or large(name):
        return
    WRITERS[suffix](mip, tmp_path / f"m{suffix}")
    read = limited(READERS["cbc"](tmp_path / f"m{suffix}"))
    assert_same(read, written(mip, suffix), rewritten=True)
