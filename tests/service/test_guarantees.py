"""Tests of guarantees do not pass where little was tested."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import guarantees
from mast_opt.store.sqlite import open_sqlite
from tests.service.processes import Clients, check

PYTEST = next(one for one in guarantees.GUARANTEES if one.module == "pytest")


@pytest.mark.parametrize(("body", "holds"), [("pass", True), ("import pytest; pytest.skip()", False)])
def test_only_skipped_tests_show_nothing(tmp_path: Path, body: str, holds: bool) -> None:
    file = tmp_path / "test_one.py"
    file.write_text(f"def test_one():\n    {body}\n")
    assert guarantees.tested(replace(PYTEST, short=f"-q -p no:cacheprovider {file}"), short=True)[0] is holds


def test_no_acknowledged_job_shows_nothing(tmp_path: Path) -> None:
    store = open_sqlite(tmp_path)
    try:
        with pytest.raises(AssertionError, match="0 jobs acknowledged"):
            check(store, Clients([]), [1], 1)
    finally:
        store.close()
