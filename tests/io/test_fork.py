"""Tables in a forked child: an error that says what to do, never a wait without end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.platforms import needs

pytestmark = [pytest.mark.second_tier, needs("signals")]

INSTANCE = Path(__file__).parents[2] / "instances" / "data_placement" / "two-regions"

FORK = """
import os, signal, sys
import mast_opt
from mast_opt.core.errors import UsageError

instance, out, before, what = sys.argv[1:]
if before == "read":
    problem = mast_opt.read(instance)
    solution = mast_opt.solve(problem, "highs")
    mast_opt.write_plan(problem, solution, out + "-plan")
elif before == "polars":
    import polars
    polars.DataFrame({"a": list(range(100000))}).sort("a").group_by("a").len()
child = os.fork()
if child == 0:
    signal.alarm(100)
    try:
        if what == "read":
            mast_opt.read(instance)
        elif what == "read_plan":
            mast_opt.read_plan(problem, out + "-plan")
        elif what == "write":
            mast_opt.write(problem, out)
        elif what == "write_plan":
            mast_opt.write_plan(problem, solution, out)
        elif what == "diff":
            mast_opt.diff(problem, None, solution.plan)
        elif what == "solve":
            assert mast_opt.solve(problem, "highs").verdict.ok
        print("done")
    except UsageError as error:
        print(error)
    sys.stdout.flush()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


def _forked(out: Path, before: str, what: str) -> str:
    words = [sys.executable, "-W", "ignore", "-c", FORK, str(INSTANCE), str(out), before, what]
    return subprocess.run(words, stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout


@pytest.mark.parametrize("what", ["read", "read_plan", "write", "write_plan", "diff"])
def test_tables_used_before_the_fork(tmp_path: Path, what: str) -> None:
    said = _forked(tmp_path / "out", "read", what)
    assert "in a forked process" in said
    assert '"spawn"' in said
    assert not (tmp_path / "out").exists()


def test_tables_not_used_before_the_fork(tmp_path: Path) -> None:
    assert _forked(tmp_path / "out", "nothing", "read") == "done\n"


@needs("threads shown")
def test_somebody_else_used_them(tmp_path: Path) -> None:
    assert "in a forked process" in _forked(tmp_path / "out", "polars", "read")


def test_a_solve_needs_no_tables(tmp_path: Path) -> None:
    assert _forked(tmp_path / "out", "read", "solve") == "done\n"
