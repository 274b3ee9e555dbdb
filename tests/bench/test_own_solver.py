"""A solver of the user's own, installed as a package with an entry point, is a contestant by its name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mast_opt.core.errors import SuiteError
from mast_opt.planner.bench.execution.subprocess_run import run_child
from mast_opt.planner.bench.suites.toml_reader import read_suite
from tests.bench.conftest import SUITE

PACKAGE = {
    "mine.py": "from mast_opt.problems.backends.highs import Highs\n\n\nclass Mine(Highs):\n    name = 'mine'\n",
    "mine-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n",
    "mine-1.0.dist-info/entry_points.txt": "[mast_opt.backends]\nmine = mine:Mine\n",
}


@pytest.mark.second_tier
def test_it_runs_like_any_other(suite_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite_file.write_text(SUITE.replace('solvers = ["highs", "highs strong"]', 'solvers = ["mine"]'))
    with pytest.raises(SuiteError, match="'mine'"):
        read_suite(suite_file)
    site = tmp_path / "site"
    for name, text in PACKAGE.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]))
    trial = read_suite(suite_file).trials[0]
    assert trial.contestant.solver == "mine"
    outcome = run_child(trial)
    assert (outcome["status"], outcome["objective"]) == ("OPTIMAL", 0.0)
    assert outcome["versions"]["mine"]
