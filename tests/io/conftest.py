from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mast_opt.core.errors import Fault, InstanceError
from mast_opt.planner.io import read
from mast_opt.problems import registry as kinds
from tests.io.toy import GOOD, HEADER

Folder = Callable[..., Path]


@pytest.fixture(autouse=True)
def toy_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the kind ``toy`` known."""
    monkeypatch.setitem(kinds.KINDS.own, "toy", "tests.io.toy:KIND")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """folder(sites="site,…", rules=None) → a valid folder but for these tables (None: not there)."""

    def make(*, header: str | bytes | None = HEADER, name: str = "toy", **tables: str | bytes | None) -> Path:
        path = tmp_path / name
        path.mkdir()
        files = {f"{table}.csv": text for table, text in {**GOOD, **tables}.items()}
        for file, content in {"instance.toml": header, **files}.items():
            if content is not None:
                (path / file).write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return make


def faults_of(path: Path) -> tuple[Fault, ...]:
    """The faults that reading this must find."""
    with pytest.raises(InstanceError) as caught:
        read(path)
    assert caught.value.faults
    return caught.value.faults


def places(path: Path) -> list[tuple[str, int | None, str | None, str | None]]:
    """(file, row, column, value) of the faults that reading this must find."""
    return [(fault.file, fault.row, fault.column, fault.value) for fault in faults_of(path)]
