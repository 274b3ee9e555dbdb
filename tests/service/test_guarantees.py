"""Tests of guarantees do not pass where little was tested."""

from __future__ import annotations

from pathlib import Path

import pytest

import mast_opt
from benchmarks import guarantees, planted_faults
from benchmarks.mutation import ROOT
from mast_opt.live.store.sqlite import open_sqlite
from tests.service.processes import Clients, check


def test_tests_of_which_none_has_passed_show_nothing() -> None:
    assert guarantees.result_of("pytest", "s\n3 skipped in 0.10s\n") == []
    assert guarantees.result_of("pytest", ".s\n1 passed, 2 skipped in 0.10s\n") == ["1 passed, 2 skipped in 0.10s"]
    assert guarantees.result_of("tests.service.kills", "200 kills\n") == ["200 kills"]
    assert guarantees.result_of("tests.service.kills", "\n") == []


def test_no_acknowledged_job_shows_nothing(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path)
    try:
        with pytest.raises(AssertionError, match="0 jobs acknowledged"):
            check(store, Clients([]), [1], 1)
    finally:
        store.close()


def test_faults_that_are_planted_fit_the_code() -> None:
    package, files = Path(mast_opt.__file__).parent, [fault["file"] for fault in planted_faults.FAULTS]
    assert sum(file.startswith(planted_faults.LIVE) for file in files) >= 30
    assert sum(file.startswith("problems/") for file in files) >= 20
    for fault in planted_faults.FAULTS:
        assert (package / fault["file"]).read_text(encoding="utf-8").count(fault["was"]) == 1, fault
        assert all((ROOT / tests).exists() for tests in fault["tests"].split()), fault
