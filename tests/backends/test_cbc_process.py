"""CBC is a process of its own; it must not outlive ours."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from mast_opt.core.errors import BackendError
from mast_opt.core.solve_result import Limit, SolveParams, Status
from mast_opt.problems.backends import cbc
from tests.backends import programs
from tests.platforms import needs

HARD = """
import numpy as np
from mast_opt.problems.backends import get
from mast_opt.problems.mip import MipBuilder
from mast_opt.core.solve_result import SolveParams

rng = np.random.default_rng(0)
m = MipBuilder("hard")
x = m.columns("x", [[str(i) for i in range(60)]], upper=1, integral=True)
weights = rng.integers(20, 100, (5, 60)).astype(float)
half = weights.sum(axis=1) // 2
m.rows("half", [[str(k) for k in range(5)]], lower=half, upper=half).add(np.arange(5)[:, None], x[None, :], weights)
m.term("cost", x, rng.random(60))
get("cbc").solve(m.build({"cost": 1.0}), SolveParams(time_limit_s=600.0))
"""
PATIENCE_S = 60.0


def children(pid: int) -> list[int]:
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for each in lists for child in each.read_text().split()]


def program(pid: int) -> str:
    """What the process runs; nothing once it is over."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except FileNotFoundError:
        return ""


@pytest.mark.second_tier
def test_it_runs_where_setpriv_cannot_tie_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "setpriv"
    old.write_text("#!/bin/sh\necho unrecognized option >&2\nexit 1\n")
    old.chmod(0o755)
    monkeypatch.setattr("mast_opt.problems.backends.cbc.shutil.which", lambda name: str(old))
    assert cbc._tied.__wrapped__() == ()


@needs("setpriv")
def test_it_ends_with_the_process_that_started_it() -> None:
    with subprocess.Popen([sys.executable, "-c", HARD], stdin=subprocess.DEVNULL) as ours:
        end = time.monotonic() + PATIENCE_S
        while not (found := [pid for pid in children(ours.pid) if program(pid) == "cbc"]):
            assert ours.poll() is None, "it was solved too soon"
            assert time.monotonic() < end
            time.sleep(0.05)
        ours.kill()
    while program(found[0]):
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.second_tier
@needs("mode bits")
def test_infeasible_is_no_proof_once_the_time_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CBC says "Infeasible" of feasible programs when its time ends in preprocessing."""
    stand_in = tmp_path / "cbc"
    stand_in.write_text("#!/bin/sh\necho 'Infeasible - objective value 0' > answer.txt\n: > answer.bin\n")
    stand_in.chmod(0o755)
    monkeypatch.setattr(cbc.Cbc, "_path", lambda self: str(stand_in))
    mip, start = programs.market_split()
    late = cbc.Cbc().solve(mip, SolveParams(time_limit_s=1e-6))
    assert (late.status, late.limit) == (Status.NO_SOLUTION, Limit.TIME)
    late = cbc.Cbc().solve(mip, SolveParams(time_limit_s=1e-6, start=start))
    assert (late.status, late.limit) == (Status.FEASIBLE, Limit.TIME)
    assert cbc.Cbc().solve(mip, SolveParams(time_limit_s=1e4)).status is Status.INFEASIBLE


@pytest.mark.second_tier
@needs("mode bits")
@pytest.mark.parametrize("words", ["", "7 infeasibilities\\nProblem is infeasible - tightenPrimalBounds!\\n"])
def test_a_crash_is_infeasible_only_where_cbc_has_said_so(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CBC 2.10.3 finds limits of columns that contradict, says so, and crashes, where preprocessing is off."""
    stand_in = tmp_path / "cbc"
    stand_in.write_text(f"#!/bin/sh\nprintf '{words}'\nkill -SEGV $$\n")
    stand_in.chmod(0o755)
    monkeypatch.setattr(cbc.Cbc, "_path", lambda self: str(stand_in))
    mip, _ = programs.market_split()
    if words:
        assert cbc.Cbc().solve(mip, SolveParams()).status is Status.INFEASIBLE
    else:
        with pytest.raises(BackendError, match="code -11"):
            cbc.Cbc().solve(mip, SolveParams())
