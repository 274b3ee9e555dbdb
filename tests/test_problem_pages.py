"""The page of each problem states the weights, columns and defaults that the code has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mast_opt.problems import registry
from mast_opt.problems.kind.schema import Column

PAGES = Path(__file__).parents[1] / "docs" / "problems"


@pytest.mark.parametrize("name", registry.kind_names())
def test_the_page_of_a_problem_states_weights_and_columns_of_the_code(name: str) -> None:
    kind, page = registry.kind_named(name), (PAGES / f"{name}.md").read_text(encoding="utf-8")
    terms = re.search(r"^\| term \|.*\bweight\b.*\n(\|.*\n)+", page, re.M)
    weights = re.findall(r"^\| `(\w+)` \|(?:.*\|)? (\d[\d.]*) \|", terms[0] if terms else "", re.M)
    assert {term: float(weight) for term, weight in weights} == {name: term.weight for name, term in kind.terms.items()}
    for table in kind.tables.schema.tables:
        row = re.search(rf"^\| `{table.name}`.*\| `([^`|]+)`[^|]*\|$", page, re.M)
        assert row, f"no row of {table.name}"
        stated = {cell.partition(" = ")[0]: cell.partition(" = ")[2] for cell in row[1].split(", ")}
        there = {column.name + "?" * (not column.required): column for column in table.columns}
        assert stated.keys() == there.keys(), table.name
        wrong = {cell: default for cell, default in stated.items() if default and default != _default(there[cell])}
        assert not wrong, table.name


def _default(column: Column) -> str:
    if column.default is None or isinstance(column.default, bool):
        return str(column.default).lower()
    return column.choices[int(column.default)] if column.choices else f"{column.default / column.scale:g}"
