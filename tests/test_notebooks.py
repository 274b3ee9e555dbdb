"""The notebooks of the documentation run from top to bottom, and show what they showed when they were written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
LONGEST_CELL_S = 600
READ: Any = nbformat.read
"""Without types of its own."""


def shown(notebook: Any) -> list[list[list[str]]]:
    """For each cell of code, the types of each output: text, tables and pictures, and no warnings."""
    return [
        [sorted(output.get("data", {output.get("name", ""): ""})) for output in cell.outputs]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def test_there_are_three() -> None:
    assert len(NAMES) == 3


@pytest.mark.second_tier
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs(name: str) -> None:
    stored, again = (READ(FOLDER / f"{name}.ipynb", as_version=4) for _ in range(2))
    for cell in again.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    NotebookClient(again, timeout=LONGEST_CELL_S, resources={"metadata": {"path": str(FOLDER)}}).execute()
    assert shown(again) == shown(stored)
    assert any("image/" in kind for outputs in shown(stored) for output in outputs for kind in output)
